// The days on which a stay is free: three months, as the API sends them. Uses no clock, because server and browser must
// draw the same days.
import { Carried, useAnswer } from './data.jsx';
import { monthName, plural } from './format.js';
import { PartUnreachable } from './trouble.jsx';

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

export function Calendar({ path, here }) {
  const answer = useAnswer(path);
  return (
    <>
      {answer.ok ? (
        <div className="months">
          {answer.value.months.map((each) => (
            <Month key={each.month} {...each} />
          ))}
        </div>
      ) : (
        <PartUnreachable what="The calendar" path={path} here={here} />
      )}
      <Carried path={path} answer={answer} />
    </>
  );
}

function Month({ month, free }) {
  const open = new Set(free);
  return (
    <table className="month">
      <caption>
        {monthName(month)} <small>{free.length === 0 ? 'fully booked' : `${plural(free.length, 'night')} free`}</small>
      </caption>
      <thead>
        <tr>
          {DAYS.map((day) => (
            <th key={day} scope="col" abbr={day}>
              {day.slice(0, 2)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeksOf(month).map((week, index) => (
          <tr key={index}>
            {week.map((day, place) => (
              <td key={place} className={day && (open.has(day) ? 'free' : 'taken')}>
                {day}
                {day && <span className="unseen">{open.has(day) ? ' free' : ' taken'}</span>}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The month as rows of seven days, Monday first. `undefined` for days of another month. */
function weeksOf(month) {
  const [year, number] = month.split('-').map(Number);
  const before = (new Date(Date.UTC(year, number - 1, 1)).getUTCDay() + 6) % 7;
  const days = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const cells = [...Array(before).fill(undefined), ...Array.from({ length: days }, (_, index) => index + 1)];
  while (cells.length % 7 > 0) cells.push(undefined);
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}
