// The search page: filters and the matching homes.
import { under } from './base.js';
import { Card } from './card.jsx';
import { Filters, Kinds } from './filters.jsx';
import { Layout } from './layout.jsx';
import { ORDERS, address } from './search.js';

const MORE = 40;

export function Results({ search, found }) {
  const what = search.kind ? `${search.kind}s` : 'Homes';
  return (
    <Layout title={`${what} near the water`} search={search}>
      <Kinds search={search} counts={found.kinds} />
      <div className="page wide">
        <Filters search={search} prices={found.prices} />
        <main>
          <div className="heading">
            <div>
              <h1>{what} near the water</h1>
              <p>
                {found.total} to choose from <span className="dot">·</span> 12–18 June <span className="dot">·</span> prices with all fees
              </p>
            </div>
            <Orders search={search} />
          </div>
          {found.homes.length === 0 ? <Nothing /> : <Homes homes={found.homes} />}
          {found.total > found.homes.length && (
            <p className="onward">
              <a className="button" href={address(search, { count: search.count + MORE })}>
                Show {Math.min(MORE, found.total - found.homes.length)} more
              </a>
              <span>
                {found.homes.length} of {found.total}
              </span>
            </p>
          )}
        </main>
      </div>
    </Layout>
  );
}

function Homes({ homes }) {
  return (
    <ul className="homes">
      {homes.map((home) => (
        <Card key={home.id} home={home} />
      ))}
    </ul>
  );
}

function Orders({ search }) {
  return (
    <nav className="orders" aria-label="Order">
      {Object.entries(ORDERS).map(([order, label]) => (
        <a key={order} href={address(search, { order })} aria-current={search.order === order ? 'true' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

function Nothing() {
  return (
    <div className="nothing">
      <h2>No home fits all of that</h2>
      <p>Take away a wish or two, or allow a higher price.</p>
      <a className="button" href={under('/')}>
        Show all homes
      </a>
    </div>
  );
}
