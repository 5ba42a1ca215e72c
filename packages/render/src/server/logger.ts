// The logger: that of the application, or one that writes readable lines.
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

/** Writes errors and warnings to stderr and the rest to stdout. The supervisor of the process adds the time. */
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
