/** Where work may go and where it would rather go: what a job asks for, what a worker accepts. */

export const CONSTRAINT_OPERATORS = ['EQ', 'NE', 'IN', 'GT', 'LT', 'EXISTS'] as const;
export type ConstraintOperator = (typeof CONSTRAINT_OPERATORS)[number];

/** A test of one attribute of a worker. `pool`, `name` and `network` are attributes too. */
export interface Constraint {
  attribute: string;
  operator: ConstraintOperator;
  /** One value; IN: any number; EXISTS: none. GT and LT compare numbers. */
  values: string[];
  /** A worker that fails it is taken only when no other fits. */
  preferred: boolean;
}

/** The attribute of a worker that can start images: by what. */
export const CONTAINERS = 'containers';
/** The attribute of one that cannot, because it is itself a container. */
export const INSIDE_CONTAINER = 'insideContainer';

export const ARRANGEMENTS = ['pack', 'spread'] as const;
export const TRUSTS = ['normal', 'restricted'] as const;

export interface PlacementSpec {
  constraints: Constraint[];
  /** `pack` keeps room for large work; `spread` prefers the emptiest worker. */
  arrangement: (typeof ARRANGEMENTS)[number];
  /** Nobody else on the worker while it runs. */
  exclusive: boolean;
  /** No two tasks of a tenant with the same name here share a worker; empty: none. */
  antiAffinity: string;
  /** Members of a gang share one value of this attribute (such as `rack`); empty: any. */
  locality: string;
  /** It may be placed on workers that can vanish, and is stopped before others. */
  interruptible: boolean;
  /** `restricted` work never goes to machines of strangers. */
  trust: (typeof TRUSTS)[number];
}

export const PLAIN_PLACEMENT: PlacementSpec = Object.freeze({
  constraints: [],
  arrangement: 'pack',
  exclusive: false,
  antiAffinity: '',
  locality: '',
  interruptible: false,
  trust: 'normal',
});

/** What a worker demands of the work it takes: stated by its pool or by its agent. */
export interface WorkerTerms {
  /** Only these tenants; empty: any. */
  tenants: string[];
  /** Only these users, as `tenant/user`; empty: any. */
  users: string[];
  interruptibleOnly: boolean;
  /** A machine of strangers: no restricted work. */
  marketplace: boolean;
}

export const OPEN_TERMS: WorkerTerms = Object.freeze({
  tenants: [],
  users: [],
  interruptibleOnly: false,
  marketplace: false,
});
