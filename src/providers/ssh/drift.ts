/** Where a host differs from what it should be, for a person. */
import type { HostReport } from './report.ts';

export interface Wanted {
  /** Which agent the controller serves; empty: nobody knows. */
  version: string;
  /** As the settings have it; empty: what is found. */
  resources: string;
  freeBytes: number;
  clockOffMs: number;
}

/** `offMs`: how far its clock is ahead of ours. */
export function driftOf(report: HostReport, offMs: number, wanted: Wanted): string[] {
  return [
    ...versionDrift(report, wanted.version),
    ...settingDrift(report, wanted.resources),
    ...lacking(report, wanted.resources),
    ...(Math.abs(offMs) > wanted.clockOffMs
      ? [`its clock is ${Math.round(Math.abs(offMs) / 1000)} s ${offMs > 0 ? 'ahead' : 'behind'}`]
      : []),
    ...(hasRoom(report, wanted.freeBytes) ? [] : [`only ${mebibytes(report.freeBytes)} are free`]),
    ...(report.leftovers ? [`files in ${report.leftovers} could not be removed`] : []),
  ];
}

export function hasRoom({ freeBytes }: HostReport, wantedBytes: number): boolean {
  return freeBytes === null || freeBytes >= wantedBytes;
}

function versionDrift({ instance }: HostReport, version: string): string[] {
  if (!instance || !version || !instance.version || instance.version === version) return [];
  return [`its agent is ${instance.version}, ours is ${version}: drain it to get ours`];
}

function settingDrift({ instance }: HostReport, resources: string): string[] {
  if (!instance || instance.resources === resources) return [];
  const [was, is] = [instance.resources || 'what is found', resources || 'what is found'];
  return [`it was launched to offer ${was}, the settings say ${is}: drain it to change that`];
}

/** Only what can be told without starting a program there. */
function lacking(report: HostReport, resources: string): string[] {
  const told: string[] = [];
  const cpus = /(?:^|,)\s*cpus=([\d.]+)/.exec(resources)?.[1];
  if (cpus && report.cpus !== null && report.cpus < Number(cpus)) {
    told.push(`it has ${report.cpus} cores, the settings say ${cpus}`);
  }
  const memory = /(?<=^|,\s*)mem=([\d.]+)([kmgt]?)(i?)/i.exec(resources);
  if (memory && report.memoryBytes !== null && report.memoryBytes < bytesOf(memory)) {
    told.push(`it has ${mebibytes(report.memoryBytes)} of memory, the settings say ${memory[0]}`);
  }
  const gpus = /(?:^|,)\s*gpus=(\d+)/.exec(resources)?.[1];
  if (gpus && report.gpus !== null && report.gpus < Number(gpus)) {
    told.push(`it shows ${report.gpus} GPUs, the settings say ${gpus}`);
  }
  return told;
}

function bytesOf([, number = '', unit = '', binary = '']: RegExpExecArray): number {
  const power = ['', 'k', 'm', 'g', 't'].indexOf(unit.toLowerCase());
  return Number(number) * (binary ? 1024 : 1000) ** power;
}

function mebibytes(bytes: number | null): string {
  return `${Math.floor((bytes ?? 0) / 2 ** 20)} MiB`;
}
