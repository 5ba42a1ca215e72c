// The page around the islands, as a string. Knows no React.

export function layout(islands, base) {
  const island = (name) => islands[name].html;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Skerry · Homes on the edge of the sea</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230f4c5c'/%3E%3Cpath d='M5 21q5.5-5 11 0t11 0' fill='none' stroke='%23fff' stroke-width='3'/%3E%3C/svg%3E">
<link rel="stylesheet" href="${base}/style.css">
<script src="${base}/page.js" defer></script>
</head>
<body>
<header class="top">
<a class="brand" href="${base}/">Skerry</a>
<nav><a href="#homes">Homes</a><a href="#dates">Dates</a><a href="#reviews">Reviews</a></nav>
</header>
<main>
<section class="hero">
<h1>Homes on the edge of&nbsp;the&nbsp;sea</h1>
<p>Boathouses, lighthouses and cabins, let by the people who live next door.</p>
${island('Search')}
${island('Viewers')}
</section>
<section id="homes">${island('Stays')}</section>
<div class="pair">
<section id="dates">${island('PriceCalendar.js')}</section>
<section id="reviews">${island('Reviews')}</section>
</div>
</main>
<footer>
<p>Each part of this page is an island: rendered on its own by one of the workers, brought to life on its own in the browser.
<a href="${base}/?broken=1">Break the reviews</a> and see the others stay.</p>
<ul>${Object.entries(islands).map(origin).join('')}</ul>
</footer>
</body>
</html>
`;
}

function origin([name, { meta, duration, reason }]) {
  if (reason) return `<li class="browser"><b>${escape(name)}</b> your browser: ${escape(reason)}</li>`;
  return `<li><b>${escape(name)}</b> worker ${Number(meta.worker)}, ${duration.toFixed(1)}&nbsp;ms</li>`;
}

function escape(text) {
  return String(text).replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
