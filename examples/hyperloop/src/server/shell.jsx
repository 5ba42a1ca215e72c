// The shell as text: one file that needs no other, for it is sent when every further request is one too many.
import { createHash } from 'node:crypto';
import { renderToStaticMarkup } from 'react-dom/server';
import { Skeleton } from '../app/skeleton.jsx';

const POLICY =
  "default-src 'none'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'";

export function renderShell({ base, files, css, script }) {
  const code = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--'); // neither may end or open anything in HTML
  const hash = createHash('sha256').update(code).digest('base64');
  const policy = `${POLICY}; script-src 'sha256-${hash}'`;
  const styles = css.replaceAll('url(./', `url(${base}/assets/`);
  const html = renderToStaticMarkup(<Skeleton base={base} files={files} css={styles} />);
  return `<!doctype html>${html}`
    .replace('<head>', () => `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace('</body>', () => `<script type="module">${code}</script></body>`);
}
