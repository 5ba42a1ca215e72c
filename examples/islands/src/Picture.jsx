// A picture of a home, drawn from two numbers, so that no file is fetched. Its gradients have ids of useId, which are
// different in each island.
import { useId } from 'react';

const HOUSES = {
  Boathouse: <path d="M118 132v-30l26-20 26 20v30z M136 132v-18h16v18z" fillRule="evenodd" />,
  Lighthouse: <path d="M136 132l5-62h14l5 62z M138 66l10-10 10 10z M128 132h40v6h-40z" />,
  Cabin: <path d="M104 132l34-44 34 44z M130 132v-16h16v16z" fillRule="evenodd" />,
};

export function Picture({ hue, sun, kind }) {
  const id = useId();
  return (
    <svg className="picture" viewBox="0 0 280 180" preserveAspectRatio="xMidYMid slice" aria-hidden="true">
      <linearGradient id={`${id}sky`} x2="0" y2="1">
        <stop stopColor={`hsl(${hue} 58% 78%)`} />
        <stop offset="1" stopColor={`hsl(${hue + 28} 78% 92%)`} />
      </linearGradient>
      <linearGradient id={`${id}sea`} x2="0" y2="1">
        <stop stopColor={`hsl(${hue} 38% 58%)`} />
        <stop offset="1" stopColor={`hsl(${hue} 45% 36%)`} />
      </linearGradient>
      <rect width="280" height="180" fill={`url(#${id}sky)`} />
      <circle cx={sun * 2.8} cy="52" r="20" fill="#fff" opacity=".85" />
      <path d="M0 128 58 70l36 34 52-62 60 70 34-26 40 42v30H0z" fill={`hsl(${hue} 28% 66%)`} />
      <rect y="134" width="280" height="46" fill={`url(#${id}sea)`} />
      <path d="M84 138q60-16 116 0z" fill={`hsl(${hue} 24% 28%)`} />
      <g fill={`hsl(${(hue * 7) % 36} 64% 42%)`}>{HOUSES[kind]}</g>
      <path d="M20 152h52M110 160h70M206 150h44M40 168h36M210 170h52" stroke="#fff" strokeWidth="2" strokeLinecap="round" opacity=".35" />
    </svg>
  );
}
