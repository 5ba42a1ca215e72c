// The package's browser side without a framework, within the page's reach. Knows no component.
import * as hypernova from '@hostler/render';

window.hypernova = hypernova;
