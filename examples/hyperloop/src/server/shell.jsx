// The shell as text: one file that needs no other, because it is sent when every further request is too much.
import { createHash } from 'node:crypto';
import { renderToStaticMarkup } from 'react-dom/server';
import { Skeleton } from '../app/skeleton.jsx';

const POLICY =
  "default-src 'none'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'";

/** `css`: `{ page, plain }`, with the fonts included. */
export function renderShell({ base, css, script }) {
  const code = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--'); // neither may end or open an element of HTML
  const hash = createHash('sha256').update(code).digest('base64');
  const policy = `${POLICY}; script-src 'sha256-${hash}'`;
  const html = renderToStaticMarkup(<Skeleton base={base} css={css} />);
  return `<!doctype html>${html}`
    .replace('<head>', () => `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace('</body>', () => `<script type="module">${code}</script></body>`);
}
