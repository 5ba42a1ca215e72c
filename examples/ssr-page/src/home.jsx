// The page of one home, and the page for unknown addresses.
import { under } from './base.js';
import { Facts, Price, Rating } from './card.jsx';
import { AMENITIES } from './catalogue.js';
import { Icon } from './icons.jsx';
import { Layout } from './layout.jsx';
import { Picture } from './picture.jsx';

export function Home({ home }) {
  return (
    <Layout title={home.name}>
      <main className="home wide">
        <div className="home-picture">
          <Picture home={home} />
        </div>
        <div className="home-columns">
          <div>
            <h1>{home.name}</h1>
            <p className="card-place">
              {home.kind} in {home.place.town}, {home.place.region}, {home.place.country} <span className="dot">·</span> {home.distance} m to {home.place.near}
            </p>
            <Facts home={home} />
            <p className="about">{home.about}</p>
            <h2>What is there</h2>
            <ul className="amenities all">
              {home.amenities.map((name) => (
                <li key={name}>
                  <Icon name={name} />
                  <span>{AMENITIES[name]}</span>
                </li>
              ))}
            </ul>
          </div>
          <aside className="booking">
            <Price home={home} />
            <Rating home={home} />
            <p className="quiet">Your host is {home.host}. You pay after {home.host} has said yes.</p>
            <a className="button" href={under('/')}>
              Back to all homes
            </a>
          </aside>
        </div>
      </main>
    </Layout>
  );
}

export function NotFound() {
  return (
    <Layout title="Not found">
      <main className="nothing wide">
        <h1>There is no such page</h1>
        <p>The address may be old, or a letter is missing.</p>
        <a className="button" href={under('/')}>
          Show all homes
        </a>
      </main>
    </Layout>
  );
}
