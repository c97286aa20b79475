/**
 * How much of its devices a worker is expected to leave unused, by what is free on it.
 *
 * Fragmentation gradient descent (Weng et al., ATC 2023) asks which part of the free devices the
 * *next* task could not use. That looks one task ahead. To it is added the same question asked to
 * the end: work drawn from the mix keeps coming, each takes its part, and what is left when nothing
 * fits any more is stranded. With a few levels of CPU and of device this is a table, filled from
 * small to large. Work that strands less is weighted higher, since the scheduler would rather send
 * that here; and at each step nothing more may come.
 *
 * The constants were fitted on the openb lists, all five at once. docs/placement.md says how, and
 * what was measured.
 */
import { WHOLE_DEVICE } from './capacity.ts';
import type { DemandMix } from './demand.ts';

/**
 * Odds that nothing more comes, against one more task of the mix: for a device in use, and for the
 * idle ones of a worker.
 */
const NO_MORE_FOR_SHARED = 0.04;
const NO_MORE_FOR_IDLE = 0.4;
/** How many devices more it strands makes a task e times less likely to be sent here. */
const CHOICE = 1.2;
/** Devices in use get first what CPU there is, and this much more than their share of it. */
const CPU_KEPT_FOR_SHARED = 1.5;

/** Levels of free CPU that are told apart; a step is at least this many millicores. */
const CPU_LEVELS = 65;
const CPU_STEP_MIN = 500;
const DEVICE_STEP = 10;
const DEVICE_LEVELS = WHOLE_DEVICE / DEVICE_STEP + 1;

/** In whole devices. Rows are levels of devices, columns levels of CPU. */
export interface StrandingTables {
  cpuStep: number;
  devices: number;
  /** By thousandths free of one device in use, in steps. */
  shared: Float64Array;
  /** By number of idle devices. */
  idle: Float64Array;
  /** Millicores that are kept for a free thousandth of a device in use. */
  cpuPerMilli: number;
}

interface Step {
  cpu: number;
  devices: number;
  /** Levels of one device that it takes; whole ones: all. */
  share: number;
  weight: number;
}

export const sharedAt = (free: number, cpu: number): number =>
  Math.floor(free / DEVICE_STEP) * CPU_LEVELS + cpu;
export const idleAt = (devices: number, cpu: number): number => devices * CPU_LEVELS + cpu;

export function cpuLevel(cpuMillis: number, cpuStep: number): number {
  const level = Math.floor(cpuMillis / cpuStep);
  return level < 0 ? 0 : level >= CPU_LEVELS ? CPU_LEVELS - 1 : level;
}

/** Powers of two times the least, so that few tables serve all workers with a device. */
export function cpuStepOf(cpuMillis: number): number {
  let step = CPU_STEP_MIN;
  while (step * (CPU_LEVELS - 1) < cpuMillis) step *= 2;
  return step;
}

/** `usable`: the part of the mix that could run on the device. */
export function strandingTables(
  mix: DemandMix,
  usable: DemandMix['classes'],
  cpuStep: number,
  devices: number,
): StrandingTables {
  const steps = stepsOf(usable, cpuStep);
  const inUse = sharedTable(steps.filter(({ share }) => share < DEVICE_LEVELS - 1));
  const idle = idleTable(steps, inUse.stranded, devices);
  const { score: shared } = inUse;
  return { cpuStep, devices, shared, idle, cpuPerMilli: cpuPerMilliOf(mix) };
}

/** In levels, alike ones together; what needs least CPU first. */
function stepsOf(classes: DemandMix['classes'], cpuStep: number): Step[] {
  const steps = new Map<string, Step>();
  for (const { of, weight } of classes) {
    const { cpuMillis, device: wanted } = of;
    const cpu = Math.ceil(cpuMillis / cpuStep);
    if (cpu >= CPU_LEVELS) continue;
    const share = Math.ceil(wanted.share / DEVICE_STEP);
    const key = `${cpu}|${wanted.count}|${share}`;
    const step = steps.get(key);
    if (step) step.weight += weight;
    else steps.set(key, { cpu, devices: wanted.count, share, weight });
  }
  return [...steps.values()].toSorted((a, b) => a.cpu - b.cpu);
}

/**
 * One device in use, for work that shares. `draws` holds how much each cell draws work to it, so
 * that the sum over the mix needs no exponential.
 */
function sharedTable(sharing: Step[]): { stranded: Float64Array; score: Float64Array } {
  const stranded = new Float64Array(DEVICE_LEVELS * CPU_LEVELS);
  const score = new Float64Array(DEVICE_LEVELS * CPU_LEVELS);
  const draws = new Float64Array(DEVICE_LEVELS * CPU_LEVELS).fill(1);
  for (let free = 1; free < DEVICE_LEVELS; free++) {
    const fitting = sharing.filter(({ share }) => share <= free);
    const left = (free * DEVICE_STEP) / WHOLE_DEVICE;
    for (let cpu = 0; cpu < CPU_LEVELS; cpu++) {
      let sum = NO_MORE_FOR_SHARED * left;
      let all = NO_MORE_FOR_SHARED;
      let usable = 0;
      for (const step of fitting) {
        if (step.cpu > cpu) break;
        const to = (free - step.share) * CPU_LEVELS + cpu - step.cpu;
        const weight = step.weight * (draws[to] as number);
        sum += weight * (stranded[to] as number);
        all += weight;
        usable += step.weight;
      }
      const at = free * CPU_LEVELS + cpu;
      stranded[at] = sum / all;
      draws[at] = Math.exp(-sum / all / CHOICE);
      score[at] = sum / all + (1 - usable) * left;
    }
  }
  return { stranded, score };
}

/** Idle devices of one worker: a task takes some whole, or opens one and leaves the rest of it. */
function idleTable(steps: Step[], shared: Float64Array, devices: number): Float64Array {
  const stranded = new Float64Array((devices + 1) * CPU_LEVELS);
  const score = new Float64Array((devices + 1) * CPU_LEVELS);
  for (let idle = 1; idle <= devices; idle++) {
    const fitting = steps.filter((step) => step.devices <= idle);
    for (let cpu = 0; cpu < CPU_LEVELS; cpu++) {
      let sum = NO_MORE_FOR_IDLE * idle;
      let all = NO_MORE_FOR_IDLE;
      let usable = 0;
      for (const step of fitting) {
        if (step.cpu > cpu) break;
        const rest = cpu - step.cpu;
        const opened = (DEVICE_LEVELS - 1 - step.share) * CPU_LEVELS + rest;
        const value =
          (stranded[(idle - step.devices) * CPU_LEVELS + rest] as number) +
          (shared[opened] as number);
        const weight = step.weight * Math.exp(-value / CHOICE);
        sum += weight * value;
        all += weight;
        usable += step.weight;
      }
      const at = idle * CPU_LEVELS + cpu;
      stranded[at] = sum / all;
      score[at] = sum / all + (1 - usable) * idle;
    }
  }
  return score;
}

function cpuPerMilliOf(mix: DemandMix): number {
  let cpu = 0;
  let millis = 0;
  for (const { of, weight } of mix.classes) {
    const { cpuMillis, device } = of;
    if (device.share === WHOLE_DEVICE) continue;
    cpu += weight * cpuMillis;
    millis += weight * device.share;
  }
  return millis === 0 ? 0 : (CPU_KEPT_FOR_SHARED * cpu) / millis;
}
