export const dynamic = 'force-dynamic';

export function GET(request) {
  return Response.json({ app: 'next', ip: request.headers.get('x-forwarded-for'), port: Number(process.env.PORT) });
}
