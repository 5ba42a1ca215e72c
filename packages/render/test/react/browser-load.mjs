// The package's browser side without a framework, as a global of the page. Knows no component.
import * as hypernova from '@hostler/render';

window.hypernova = hypernova;
