// /api/stays: the listings of a holiday site, as a search and one by one, with reviews and bookings that take longer.
import { setTimeout as wait } from 'node:timers/promises';
import { Router } from 'express';
import { KINDS } from './places.js';
import { reviewsOf } from './reviews.js';
import { ORDERS, calendarOf, findStay, searchStays } from './stays.js';

/** In milliseconds: the time of the remote systems with reviews and bookings. */
const REVIEWS_TAKE = Number(process.env.REVIEWS_TAKE ?? 600);
const CALENDAR_TAKES = Number(process.env.CALENDAR_TAKES ?? 250);
const MOST = 60;

export const stays = Router();

stays.get('/', (request, response) => {
  const { query } = request;
  const wrong = complaint(query);
  if (wrong) return response.status(400).json({ error: wrong });
  response.json(
    searchStays({
      kind: query.kind,
      upto: Number(query.upto ?? 0),
      guests: Number(query.guests ?? 1),
      words: (query.q ?? '').toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8),
      order: query.order ?? 'best',
      from: Number(query.from ?? 0),
      limit: Math.min(Number(query.limit ?? 24), MOST),
    }),
  );
});

stays.get('/:id', withStay((stay, response) => response.json(stay)));

stays.get(
  '/:id/reviews',
  withStay(async (stay, response) => {
    await wait(REVIEWS_TAKE);
    response.json(reviewsOf(stay));
  }),
);

stays.get(
  '/:id/calendar',
  withStay(async (stay, response) => {
    await wait(CALENDAR_TAKES);
    response.json(calendarOf(stay, new Date()));
  }),
);

function withStay(answer) {
  return (request, response) => {
    const stay = findStay(request.params.id);
    return stay ? answer(stay, response) : response.status(404).json({ error: `no stay ${request.params.id}` });
  };
}

/** A key that is given twice is an array, and so not a number. */
function complaint({ kind, order, q = '', ...numbers }) {
  if (kind !== undefined && !Object.hasOwn(KINDS, kind)) return `"kind" must be one of ${Object.keys(KINDS).join(', ')}`;
  if (order !== undefined && !Object.hasOwn(ORDERS, order)) return `"order" must be one of ${Object.keys(ORDERS).join(', ')}`;
  if (typeof q !== 'string') return '"q" must be given once';
  const wrong = ['upto', 'guests', 'from', 'limit'].find((key) => numbers[key] !== undefined && !/^\d{1,9}$/.test(numbers[key]));
  return wrong && `"${wrong}" must be a whole number`;
}
