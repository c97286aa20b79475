/** Says why classes wait, where that has changed; at length only as far as a plan's looks go. */
import { explainClass, explainMisfit, noRoom, type Explanation } from '../explain.ts';
import type { PendingClass } from './classes.ts';
import type { Planning } from './planning.ts';
import type { Binding } from './quota.ts';
import type { Shape } from './shapes.ts';

/**
 * Explaining looks at every worker. So many looks a plan may take; what is not explained in full
 * then is when somebody asks.
 */
const LOOKS_PER_PLAN = 20_000;
/** Numbers change all the time; for so long what was said of a shape is said again. */
const SAID_AGAIN_MS = 5000;

export class Telling {
  readonly #planning: Planning;
  #looks = 0;

  constructor(planning: Planning) {
    this.#planning = planning;
  }

  tell(pending: PendingClass, why: Explanation): void {
    if (pending.told === why.sentence) return;
    pending.told = why.sentence;
    this.#planning.made.waiting.push({ classKey: pending.request.key, why });
  }

  clear(pending: PendingClass): void {
    if (pending.told !== '') this.#planning.made.cleared.push(pending.request.key);
    pending.told = '';
  }

  /** It fits nowhere; `over` is the soft limit that has put it behind the others. */
  misfit(pending: PendingClass, over: Binding | null): void {
    const { view, nowMs } = this.#planning;
    const { shape } = pending;
    const saidMs = nowMs - shape.saidAtMs;
    if (!shape.why || saidMs < 0 || saidMs >= SAID_AGAIN_MS) this.#look(shape);
    if (!shape.why && pending.told !== '') return;
    this.tell(pending, explainClass(view, pending, shape.why ?? noRoom(view), over));
  }

  /** Workers have changed: says anew of what is blocked why. */
  again(): void {
    const { view } = this.#planning;
    if (!view.recomposed) return;
    view.recomposed = false;
    for (const shape of view.classes.shapes.blocked()) {
      if (this.#looks >= LOOKS_PER_PLAN) return;
      this.#look(shape);
      for (const pending of shape.classes) {
        if (pending.told !== '' && pending.waiting > 0) this.misfit(pending, null);
      }
    }
  }

  #look(shape: Shape): void {
    const { view, nowMs } = this.#planning;
    if (this.#looks >= LOOKS_PER_PLAN) return;
    this.#looks += view.fleet.size;
    shape.why = explainMisfit(view, shape.request);
    shape.saidAtMs = nowMs;
  }
}
