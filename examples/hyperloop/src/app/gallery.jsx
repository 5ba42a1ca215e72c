// The pictures of a stay: five in an overview, or one large. The address contains the open one, so a link can show it.
import { useEffect, useRef } from 'react';
import { useSite } from './context.js';
import { Icon } from './icons.jsx';
import { PHOTOS, Picture } from './picture.jsx';

export function Gallery({ stay, photo, here }) {
  return (
    <>
      <ul className="gallery" aria-label="Pictures">
        {PHOTOS.map(({ label }, index) => (
          <li key={index}>
            <a href={`${here}?photo=${index + 1}`} aria-label={`${label(stay)}: enlarge`}>
              <Picture stay={stay} photo={index} size={index === 0 ? 'first' : 'tile'} hidden />
            </a>
          </li>
        ))}
      </ul>
      {photo !== undefined && <Enlarged stay={stay} photo={photo} here={here} />}
    </>
  );
}

function Enlarged({ stay, photo, here }) {
  const { go } = useSite();
  const dialog = useRef(null);
  const link = (number) => `${here}?photo=${((number - 1 + PHOTOS.length) % PHOTOS.length) + 1}`;

  // The server can only open the dialog. Only a browser can make it modal.
  useEffect(() => {
    const element = dialog.current;
    element.close();
    element.showModal();
    return () => element.close();
  }, []);
  const onCancel = (event) => {
    event.preventDefault();
    go(here, { replace: true });
  };
  const onKeyDown = ({ key }) => {
    if (key === 'ArrowLeft') go(link(photo - 1), { replace: true });
    if (key === 'ArrowRight') go(link(photo + 1), { replace: true });
  };

  const label = PHOTOS[photo - 1].label(stay);
  return (
    <dialog className="enlarged" open ref={dialog} aria-label={`Pictures of ${stay.name}`} onCancel={onCancel} onKeyDown={onKeyDown}>
      <a className="round shut" href={here} data-replace="" aria-label="Close">
        <Icon name="close" />
      </a>
      <figure>
        <Picture stay={stay} photo={photo - 1} size="wide" />
        <figcaption aria-live="polite">
          {label} <span>{`${photo} of ${PHOTOS.length}`}</span>
        </figcaption>
      </figure>
      <a className="round before" href={link(photo - 1)} data-replace="" aria-label="Picture before">
        <Icon name="left" />
      </a>
      <a className="round after" href={link(photo + 1)} data-replace="" aria-label="Next picture">
        <Icon name="right" />
      </a>
    </dialog>
  );
}
