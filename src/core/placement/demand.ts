/** What has been asked for so far: the mix of device work that the score keeps room for. */
import type { DeviceRequest } from '../../model/resources.ts';
import type { PlacementRequest } from './request.ts';

/** One kind of device work and how often it was asked for. */
export interface DemandClass {
  readonly key: string;
  cpuMillis: number;
  memoryBytes: number;
  device: DeviceRequest;
  count: number;
}

/** The mix at one moment: the weights do not change. A new object means: score anew. */
export interface DemandMix {
  classes: readonly { of: DemandClass; weight: number }[];
  /** Millicores asked for with each byte of memory; null when nobody asks for memory. */
  cpuPerByte: number | null;
}

/** Too few to call it a mix: until then the fullest worker that fits is taken. */
const FIRST_MIX_AT = 32;
/** Then old ones count half, so that the mix follows what people do now. */
const REMEMBERED = 8192;
/** The rarest beyond this many say little and cost time. */
const CLASSES_IN_MIX = 512;
/** Of the weight must have moved between classes before everything is scored anew. */
const DRIFT_WORTH_IT = 0.05;

export class Demand {
  mix: DemandMix | null = null;
  readonly #classes = new Map<string, DemandClass>();
  #total = 0;
  #nextLook = FIRST_MIX_AT;

  /** Null for work without devices: it strands none. */
  classOf({ resources }: PlacementRequest): DemandClass | null {
    const { cpuMillis, memoryBytes, device } = resources;
    if (!device) return null;
    const key = JSON.stringify([cpuMillis, memoryBytes, device]);
    return this.#classes.get(key) ?? { key, cpuMillis, memoryBytes, device, count: 0 };
  }

  asked(of: DemandClass, times: number): void {
    if (of.count === 0) this.#classes.set(of.key, of);
    of.count += times;
    this.#total += times;
    if (this.#total >= this.#nextLook) this.#look();
  }

  /** Looks get rarer as the mix settles. */
  #look(): void {
    const mix = mixOf(this.#classes.values());
    if (!this.mix || driftOf(this.mix, mix) > DRIFT_WORTH_IT) this.mix = mix;
    if (this.#total >= REMEMBERED) this.#forgetHalf();
    this.#nextLook = 2 * this.#total;
  }

  #forgetHalf(): void {
    this.#total = 0;
    for (const [key, known] of this.#classes) {
      known.count = known.count < 2 ? 0 : known.count / 2;
      if (known.count === 0) this.#classes.delete(key);
      this.#total += known.count;
    }
  }
}

function mixOf(all: Iterable<DemandClass>): DemandMix {
  const common = [...all]
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, CLASSES_IN_MIX);
  const total = common.reduce((sum, { count }) => sum + count, 0);
  const classes = common.map((of) => ({ of, weight: of.count / total }));
  const sum = (of: (each: DemandClass) => number): number =>
    common.reduce((all, each) => all + each.count * of(each), 0);
  const memory = sum(({ memoryBytes }) => memoryBytes);
  const cpu = sum(({ cpuMillis }) => cpuMillis);
  return { classes, cpuPerByte: memory > 0 ? cpu / memory : null };
}

/** Half the sum of differences: the part of the weight that is elsewhere now. */
function driftOf(old: DemandMix, now: DemandMix): number {
  const before = new Map(old.classes.map((each) => [each.of, each]));
  let drift = 0;
  for (const { of, weight } of now.classes) {
    drift += Math.abs(weight - (before.get(of)?.weight ?? 0));
    before.delete(of);
  }
  for (const { weight } of before.values()) drift += weight;
  return drift / 2;
}
