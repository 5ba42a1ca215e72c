// The reviews of a stay by guests. They come late, from a remote system.
import { Carried, useAnswer } from './data.jsx';
import { monthName, plural, stars } from './format.js';
import { Icon } from './icons.jsx';
import { PartUnreachable } from './trouble.jsx';

export function Reviews({ path, here }) {
  const answer = useAnswer(path);
  return (
    <>
      {answer.ok ? <Said {...answer.value} /> : <PartUnreachable what="The reviews" path={path} here={here} />}
      <Carried path={path} answer={answer} />
    </>
  );
}

function Said({ rating, count, stars: counts, aspects, reviews }) {
  if (count === 0) return <p>Nobody has stayed here yet: you could be the first to write.</p>;
  return (
    <>
      <div className="verdict">
        <p className="figure">
          <Icon name="star" filled /> {stars(rating)}
          <span>{plural(count, 'review')}</span>
        </p>
        <ol className="shares" aria-label="How many gave how many stars">
          {counts.map((number, index) => (
            <li key={index}>
              <span>{5 - index}</span>
              <Bar share={number / count} />
              <span className="unseen">{plural(number, 'review')}</span>
            </li>
          ))}
        </ol>
        <dl className="aspects">
          {aspects.map(({ name, rating: figure }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{figure.toFixed(1)}</dd>
            </div>
          ))}
        </dl>
      </div>
      <ul className="reviews">
        {reviews.map((review) => (
          <li key={review.id}>
            <Review {...review} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Review({ author, from, month, stars: given, text }) {
  return (
    <article className="review">
      <h3>
        <span className="initial" aria-hidden="true">
          {author[0]}
        </span>
        <span>
          {author} <small>from {from}</small>
        </span>
      </h3>
      <p className="given">
        <span role="img" aria-label={`${given} of 5 stars`}>
          {'★'.repeat(given)}
          <i>{'★'.repeat(5 - given)}</i>
        </span>
        <time dateTime={month}>{monthName(month)}</time>
      </p>
      <p>{text}</p>
    </article>
  );
}

function Bar({ share }) {
  return (
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect className="rail" width="100" height="6" />
      <rect className="part" width={Math.round(share * 100)} height="6" />
    </svg>
  );
}
