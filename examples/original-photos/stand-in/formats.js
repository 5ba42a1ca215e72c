// Flickr's response formats `rest` (XML) and `json` (a script, or plain JSON with nojsoncallback=1). Knows no methods.
// https://www.flickr.com/services/api/response.rest.html and response.json.html

export function write(response, { format, callback, answer }) {
  const json = format === 'json';
  const text = json ? JSON.stringify(answer) : xml(answer);
  const body = json && callback ? `${callback}(${text})` : text;
  const type = !json ? 'text/xml' : callback ? 'text/javascript' : 'application/json';
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function xml({ stat, code, message, sizes }) {
  const content = stat === 'fail' ? element('err', { code, msg: message }) : list(sizes);
  return `<?xml version="1.0" encoding="utf-8" ?>\n<rsp stat="${stat}">\n${content}\n</rsp>\n`;
}

function list({ size, ...flags }) {
  return `<sizes${attributes(flags)}>\n${size.map((one) => element('size', one)).join('\n')}\n</sizes>`;
}

const element = (name, values) => `<${name}${attributes(values)} />`;
const attributes = (values) => Object.entries(values).map(([name, value]) => ` ${name}="${escape(String(value))}"`).join('');
const escape = (text) => text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
