/**
 * Figures over time as means of equal steps. Nobody knows beforehand how long a simulation is: when
 * the steps run out, each two become one of twice the length.
 */
import type { Series } from '../../protocol/simulation.ts';

/** More would be finer than a drawing shows. */
const STEPS_AT_MOST = 512;
const FIRST_STEP_MS = 1000;

export interface Level {
  waiting: number;
  running: number;
  cpu: number;
  devices: number;
}

const NAMES = ['waiting', 'running', 'cpu', 'devices'] as const;

export class SeriesRecorder {
  #stepMs = FIRST_STEP_MS;
  #elapsedMs = 0;
  /** Value times milliseconds. */
  readonly #sums: Record<keyof Level, Float64Array> = {
    waiting: new Float64Array(STEPS_AT_MOST),
    running: new Float64Array(STEPS_AT_MOST),
    cpu: new Float64Array(STEPS_AT_MOST),
    devices: new Float64Array(STEPS_AT_MOST),
  };

  /** The level held for so long. */
  add(level: Level, durationMs: number): void {
    let leftMs = durationMs;
    while (leftMs > 0) {
      let step = Math.floor(this.#elapsedMs / this.#stepMs);
      while (step >= STEPS_AT_MOST) {
        this.#double();
        step = Math.floor(this.#elapsedMs / this.#stepMs);
      }
      const partMs = Math.min(leftMs, (step + 1) * this.#stepMs - this.#elapsedMs);
      for (const name of NAMES) {
        const sums = this.#sums[name];
        sums[step] = (sums[step] ?? 0) + level[name] * partMs;
      }
      this.#elapsedMs += partMs;
      leftMs -= partMs;
    }
  }

  finish(): Series {
    const steps = Math.ceil(this.#elapsedMs / this.#stepMs);
    const means = (name: keyof Level): number[] =>
      Array.from(this.#sums[name].slice(0, steps), (sum, step) => {
        const lengthMs = Math.min(this.#stepMs, this.#elapsedMs - step * this.#stepMs);
        return lengthMs > 0 ? sum / lengthMs : 0;
      });
    return {
      stepMs: this.#stepMs,
      waiting: means('waiting'),
      running: means('running'),
      cpu: means('cpu'),
      devices: means('devices'),
    };
  }

  #double(): void {
    this.#stepMs *= 2;
    for (const name of NAMES) {
      const sums = this.#sums[name];
      for (let step = 0; step < STEPS_AT_MOST; step++) {
        const first = sums[step * 2] ?? 0;
        const second = sums[step * 2 + 1] ?? 0;
        sums[step] = first + second;
      }
    }
  }
}
