import { headers } from 'next/headers';

// Rendered for each request: it reads the request's headers.
export default async function Page() {
  const host = (await headers()).get('host');
  return <h1>Hello from Next.js at {host}</h1>;
}
