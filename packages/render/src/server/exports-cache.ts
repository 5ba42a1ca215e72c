// A cache of modules' exports that drops the least recently used one, with the method names of Hypernova's cache. Knows
// no modules.
import { LRUCache } from 'lru-cache';

/** As good as no limit for modules. An `LRUCache` takes memory for its whole size at once. */
const LARGEST = 100_000;

export class ExportsCache {
  /** Boxed, because a module may export `undefined`, which an `LRUCache` cannot store. */
  readonly #entries: LRUCache<string, { exports: unknown }>;

  /** `size`: 0 and `Infinity` are no limit, as in Hypernova. */
  constructor(size: number) {
    this.#entries = new LRUCache({ max: size > 0 ? Math.ceil(Math.min(size, LARGEST)) : LARGEST });
  }

  get itemCount(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  get(key: string): unknown {
    return this.#entries.get(key)?.exports;
  }

  /** Does not change which entry was used last. */
  peek(key: string): unknown {
    return this.#entries.peek(key)?.exports;
  }

  set(key: string, exports: unknown): void {
    this.#entries.set(key, { exports });
  }

  /** The most recently used key comes first. */
  keys(): string[] {
    return [...this.#entries.keys()];
  }

  del(key: string): void {
    this.#entries.delete(key);
  }

  reset(): void {
    this.#entries.clear();
  }
}
