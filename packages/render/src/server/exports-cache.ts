// What modules have exported, the least recently used forgotten first, under the names that Hypernova's cache has. Knows no modules.
import { LRUCache } from 'lru-cache';

export class ExportsCache {
  /** Boxed: a module may export anything, `undefined` too, and an `LRUCache` has no such entry. */
  readonly #entries: LRUCache<string, { exports: unknown }>;

  constructor(size: number) {
    this.#entries = new LRUCache({ max: Math.max(1, size) });
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

  /** Without making it the one that was used last. */
  peek(key: string): unknown {
    return this.#entries.peek(key)?.exports;
  }

  set(key: string, exports: unknown): void {
    this.#entries.set(key, { exports });
  }

  /** The one that was used last comes first. */
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
