/** The site's policy as the API shows it, and as the parts that apply it get it. */
import { z } from 'zod';
import type { Policy } from '../model/policy/schema.ts';

export const policyView = z
  .object({
    /** As it was written; empty: there is none. */
    text: z.string(),
    loadedAtMs: z.number().nullable(),
    /** Why what the file holds now is not in force; null: it is. */
    problem: z.string().nullable(),
  })
  .meta({ id: 'Policy' });
export type PolicyView = z.infer<typeof policyView>;

export interface PolicySource {
  /** What is in force now; null: nothing is. */
  current(): Policy | null;
  view(): PolicyView;
}

export const NO_POLICY: PolicySource = {
  current: () => null,
  view: () => ({ text: '', loadedAtMs: null, problem: null }),
};
