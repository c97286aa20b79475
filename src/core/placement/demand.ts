/** What has been asked for so far: the mix of device work that the score keeps room for. */
import type { DeviceRequest, ResourceRequest } from '../../model/resources.ts';
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

/** From this many asks on old ones count half, so that the mix follows what people do now. */
const REMEMBERED = 8192;
/** Looks get rarer as the mix settles: at so many times the asks, but not rarer than this. */
const LOOK_AT_TIMES = 2;
const LOOK_EVERY = 4096;
/** The rarest beyond this many say little and cost time. */
const CLASSES_IN_MIX = 512;
/** Of the weight must have moved between classes before everything is scored anew. */
const DRIFT_WORTH_IT = 0.05;

/** Counted before anybody asked: a young fleet fills devices in use before it opens others. */
const EXPECTED_ASKS = 24;
const EXPECTED_CPU_MILLIS = 4000;
const EXPECTED: DeviceRequest = { kind: 'gpu', count: 1, share: 1000, models: [], memoryBytes: 0 };

export class Demand {
  mix: DemandMix;
  readonly #classes = new Map<string, DemandClass>();
  #total = 0;
  #nextLook = 0;

  constructor() {
    const resources = {
      cpuMillis: EXPECTED_CPU_MILLIS,
      memoryBytes: 0,
      device: EXPECTED,
      ports: 0,
    };
    this.#classOf(resources, EXPECTED).count = EXPECTED_ASKS;
    this.#total = EXPECTED_ASKS;
    this.mix = mixOf(this.#classes.values());
    this.#nextLook = this.#total + 1;
  }

  /** Null for work without devices: it strands none. */
  classOf({ resources }: PlacementRequest): DemandClass | null {
    return resources.device && this.#classOf(resources, resources.device);
  }

  #classOf({ cpuMillis, memoryBytes }: ResourceRequest, device: DeviceRequest): DemandClass {
    const key = JSON.stringify([cpuMillis, memoryBytes, device]);
    let known = this.#classes.get(key);
    if (!known) {
      known = { key, cpuMillis, memoryBytes, device, count: 0 };
      this.#classes.set(key, known);
    }
    return known;
  }

  asked(of: DemandClass, times: number): void {
    // It may have been forgotten while its owner kept it.
    if (of.count === 0 && !this.#classes.has(of.key)) this.#classes.set(of.key, of);
    of.count += times;
    this.#total += times;
    if (this.#total >= this.#nextLook) this.#look();
  }

  #look(): void {
    const mix = mixOf(this.#classes.values());
    if (driftOf(this.mix, mix) > DRIFT_WORTH_IT) this.mix = mix;
    if (this.#total >= REMEMBERED) this.#forgetHalf();
    this.#nextLook = Math.min(LOOK_AT_TIMES * this.#total, this.#total + LOOK_EVERY);
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
  const cpu = sum(({ cpuMillis, memoryBytes }) => (memoryBytes > 0 ? cpuMillis : 0));
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
