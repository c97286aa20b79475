/** Where and when: partition, QOS, features, node names, dependencies. */
import { PRIORITIES } from '../../model/job.ts';
import type { JobDraft } from '../jobDraft.ts';
import { expandHosts } from './hosts.ts';
import type { Sheet } from './sheet.ts';
import type { SiteTable } from './table.ts';

export function mapWhere(sheet: Sheet, table: SiteTable, draft: JobDraft): { singleton: boolean } {
  mapPartition(sheet, table, draft);
  mapQos(sheet, table, draft);
  mapFeatures(sheet, table, draft);
  mapHosts(sheet, draft);
  const exclusive = sheet.take('exclusive');
  if (exclusive !== undefined) draft['exclusive'] = true;
  if (exclusive) sheet.leave('exclusive', 'its workers are for this job alone');
  if (sheet.take('spread-job') !== undefined) draft['spread'] = true;
  return { singleton: mapDependency(sheet, draft) };
}

/** Several are tried together, as Slurm does: whichever has room first. */
function mapPartition(sheet: Sheet, table: SiteTable, draft: JobDraft): void {
  const names = listOf(sheet.take('partition'));
  const pools: string[] = [];
  for (const name of names) {
    const entry = table.partitions[name];
    if (entry === undefined) {
      sheet.leave('partition', 'no pool is named for it in sbatch.yaml: any pool will do', name);
    } else if (typeof entry === 'string') {
      pools.push(entry);
    } else {
      Object.assign(draft, entry);
    }
  }
  if (pools.length === 1 && names.length === 1) draft['pool'] = pools[0];
  // One that is not mapped might be any: then the others bind nothing.
  else if (pools.length === names.length && pools.length > 1) {
    addConstraint(draft, `pool in ${pools.join(',')}`);
  }
}

function mapQos(sheet: Sheet, table: SiteTable, draft: JobDraft): void {
  const name = sheet.take('qos');
  if (name === undefined) return;
  const entry = table.qos[name] ?? PRIORITIES.find((band) => band === name);
  if (entry === undefined) sheet.leave('qos', 'no band is named for it in sbatch.yaml');
  else if (typeof entry === 'string') draft['priority'] = entry;
  else Object.assign(draft, entry);
}

/** `a&b`: a worker has an attribute for each; other forms choose between nodes, which is lost. */
function mapFeatures(sheet: Sheet, table: SiteTable, draft: JobDraft): void {
  for (const option of ['constraint', 'prefer'] as const) {
    const text = sheet.take(option);
    if (text === undefined) continue;
    const features = text.split(/[&,]/).map((feature) => feature.trim());
    if (!features.every((feature) => /^[\w.:-]+$/.test(feature))) {
      sheet.leave(option, 'only features joined by & are mapped');
      continue;
    }
    for (const feature of features) {
      const entry = table.constraints[feature] ?? `exists:${feature}`;
      if (typeof entry === 'string') addConstraint(draft, entry, option);
      else Object.assign(draft, entry);
    }
  }
}

function mapHosts(sheet: Sheet, draft: JobDraft): void {
  const wanted = sheet.take('nodelist');
  if (wanted?.includes('/')) sheet.leave('nodelist', 'a file of node names is not read');
  else if (wanted) addConstraint(draft, `name in ${expandHosts(wanted).join(',')}`);
  const unwanted = sheet.take('exclude');
  if (unwanted?.includes('/')) sheet.leave('exclude', 'a file of node names is not read');
  else if (unwanted) {
    for (const host of expandHosts(unwanted)) addConstraint(draft, `name!=${host}`);
  }
}

function addConstraint(
  draft: JobDraft,
  test: string,
  key: 'constraint' | 'prefer' = 'constraint',
): void {
  const already = draft[key];
  const list = already === undefined ? [] : Array.isArray(already) ? already : [already];
  draft[key] = [...list, test];
}

const CONDITIONS: Record<string, string> = {
  afterok: 'ok',
  afternotok: 'failed',
  afterany: 'any',
};

/** `afterok:ID:ID,afterany:ID`; all must hold. `?` instead of `,` would be any of them. */
function mapDependency(sheet: Sheet, draft: JobDraft): boolean {
  const text = sheet.take('dependency');
  if (text === undefined || text === '') return false;
  if (text.includes('?')) {
    sheet.leave('dependency', 'any of several has no equivalent: all must have ended');
    return false;
  }
  let singleton = false;
  const after: { job: string; when: string }[] = [];
  for (const part of text.split(',')) {
    const [kind = '', ...jobs] = part.split(':');
    const when = CONDITIONS[kind];
    if (kind === 'singleton') singleton = true;
    else if (!when || jobs.length === 0) sheet.leave('dependency', REASONS[kind] ?? OTHER, part);
    else after.push(...jobs.map((job) => ({ job: job.replace(/\+\d+$/, ''), when })));
  }
  if (after.length > 0) draft['after'] = after;
  return singleton;
}

const OTHER = 'mapped are afterok, afternotok, afterany and singleton';
const REASONS: Record<string, string> = {
  after: 'a job waits for the end of another, not for its start',
  aftercorr: 'a task of an array does not wait for one task of another',
};

function listOf(text: string | undefined): string[] {
  return text === undefined ? [] : text.split(',').filter((name) => name !== '');
}
