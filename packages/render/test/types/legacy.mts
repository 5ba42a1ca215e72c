// What a module writes that has the types of React 16 or 17. It is compiled only.
import { renderReact } from '@hostler/render/react-legacy';

renderReact('A', () => null, { root: { onRecoverableError: (error, { componentStack }) => console.log(error, componentStack) } });
