// Where lines go: the application's logger, or one that writes each as a readable line.
import { inspect } from 'node:util';
import type { Logger, RendererConfig } from './types.js';

const LEVELS = ['error', 'warn', 'info'];

export interface Log {
  error(message: string, meta?: unknown): void;
  warn(message: string, meta?: unknown): void;
  info(message: string, meta?: unknown): void;
}

export function createLog({ loggerInstance, logger = {} }: Pick<RendererConfig, 'loggerInstance' | 'logger'>): Log {
  const target = loggerInstance ?? lineLogger(logger.level ?? 'info');
  const at = (level: string) => (message: string, meta?: unknown) => {
    target.log(level, message, meta);
  };
  return { error: at('error'), warn: at('warn'), info: at('info') };
}

/** Errors and warnings to stderr, the rest to stdout; whoever runs the process adds the time. */
function lineLogger(least: string): Logger {
  const upTo = LEVELS.indexOf(least) === -1 ? LEVELS.length : LEVELS.indexOf(least);
  return {
    log(level, message, meta) {
      if (LEVELS.indexOf(level) > upTo) return;
      const line = `${level}: ${message}${meta === undefined ? '' : ` ${inspect(meta, { breakLength: Infinity })}`}`;
      if (level === 'info') console.log(line);
      else console.error(line);
    },
  };
}
