/** Blocks into a job: the template is read, rendered and checked, then its code is stored. */
import type { JobSpec } from '../../model/job.ts';
import type { StoreCode } from './codeStore.ts';
import { templateJob, type OwnParts } from './templateJob.ts';
import type { Templates } from './templates.ts';

interface JobWish {
  tenant: string;
  template: string;
  /** Where the template was named, for the error when there is none such. */
  field: string;
  values: Record<string, unknown>;
  own: OwnParts;
}

export type MakeJob = (wish: JobWish) => Promise<JobSpec>;

export function createMakeJob(templates: Templates, storeCode: StoreCode): MakeJob {
  return async ({ tenant, template: name, field, values, own }) => {
    const template = await templates.read(name, field);
    const code = await templates.codeOf(template);
    const bundled = code && { code: { bundle: code.bundle, folder: '', commit: '', diff: '' } };
    const spec = templateJob(template, values, { ...own, ...bundled });
    // Last: a job that is refused leaves nothing behind.
    if (code) await storeCode(tenant, code);
    return spec;
  };
}
