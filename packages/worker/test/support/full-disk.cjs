// Stands for a full disk: no file gets a text.
require('fs').writeFileSync = () => {
  throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
};
