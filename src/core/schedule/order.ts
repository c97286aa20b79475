/**
 * Whose turn it is: bands in order; within a band what has waited too long, the oldest first; then
 * tenants by their share of the fleet, the users of a tenant by theirs, a user's classes by the age
 * of their first job; then, in the same order, what may be interrupted by its own band; last, who
 * is over a soft limit.
 *
 * Shares change only by what is placed, and that is always what stands first; so each step costs
 * the depth of three heaps, however much waits.
 */
import type { JobId } from '../../model/ids.ts';
import type { FleetTotals } from '../placement/fleet.ts';
import type { Account } from './accounts.ts';
import { Heap } from './heap.ts';
import type { PendingClass } from './classes.ts';

export type Tier = 'aged' | 'share' | 'interruptible' | 'demoted';

export interface OrderOptions {
  nowMs: number;
  halfLifeMs: number;
  ageingMs: number;
  totals: FleetTotals;
}

interface Turn {
  pending: PendingClass;
  job: JobId;
  sinceMs: number;
}

/** A tenant with its users, or a user with its classes. */
interface Rank<Item> {
  account: Account;
  share: number;
  /** Of the first of its items. */
  job: JobId;
  items: Heap<Item>;
}

type UserRank = Rank<Turn>;
type TenantRank = Rank<UserRank>;

export class Order {
  readonly #options: OrderOptions;
  /** Classes of the bands still ahead, the first band last. */
  readonly #bands: { band: number; classes: PendingClass[] }[];
  band = -1;
  tier: Tier = 'demoted';
  readonly #aged = new Heap<Turn>(waitsLonger);
  readonly #tenants = new Heap<TenantRank>(comesFirst);
  /** For the tiers still ahead of this band: ranked only then, by the shares of that time. */
  readonly #normal: Turn[] = [];
  readonly #interruptible: Turn[] = [];
  readonly #demoted: Turn[] = [];

  constructor(classes: Iterable<PendingClass>, options: OrderOptions) {
    this.#options = options;
    const bands = new Map<number, PendingClass[]>();
    for (const pending of classes) {
      const { band } = pending.request;
      const list = bands.get(band);
      if (list) list.push(pending);
      else bands.set(band, [pending]);
    }
    this.#bands = [...bands]
      .map(([band, list]) => ({ band, classes: list }))
      .toSorted((a, b) => b.band - a.band);
  }

  /** The class whose turn it is; its queue has a head. */
  first(): PendingClass | null {
    for (;;) {
      const turn = this.#top();
      if (turn) return turn.pending;
      if (!this.#nextTier()) return null;
    }
  }

  /** The head of the first was placed or passed over: it stands where its next one belongs. */
  advance(): void {
    const turn = this.#top();
    if (!turn) return;
    const head = headOf(turn.pending);
    if (!head) {
      this.drop();
      return;
    }
    turn.job = head.job;
    turn.sinceMs = head.sinceMs;
    if (this.tier !== 'aged') {
      this.#settle();
      return;
    }
    if (this.#isAged(turn)) {
      this.#aged.settleTop();
      return;
    }
    this.#aged.pop();
    this.#toShare(turn);
  }

  /** Nothing more of the first can be placed. */
  drop(): void {
    if (this.tier === 'aged') {
      this.#aged.pop();
      return;
    }
    const tenant = this.#tenants.top();
    const user = tenant?.items.top();
    user?.items.pop();
    this.#settle();
  }

  /** The first is over a soft limit. */
  demote(): void {
    const turn = this.#top();
    if (!turn) return;
    this.#demoted.push(turn);
    this.drop();
  }

  #top(): Turn | undefined {
    if (this.tier === 'aged') return this.#aged.top();
    return this.#tenants.top()?.items.top()?.items.top();
  }

  /** The first tenant's and user's shares and turns may have changed. */
  #settle(): void {
    const tenant = this.#tenants.top();
    const user = tenant?.items.top();
    if (!tenant || !user) return;
    user.items.settleTop();
    if (this.#rerank(user, user.items.top()?.job)) tenant.items.settleTop();
    else tenant.items.pop();
    if (this.#rerank(tenant, tenant.items.top()?.job)) this.#tenants.settleTop();
    else this.#tenants.pop();
  }

  #rerank(rank: UserRank | TenantRank, job: JobId | undefined): boolean {
    if (job === undefined) return false;
    rank.job = job;
    rank.share = this.#shareOf(rank.account);
    return true;
  }

  #nextTier(): boolean {
    if (this.tier === 'aged') {
      this.tier = 'share';
      this.#rankAll(this.#normal.splice(0));
      return true;
    }
    if (this.tier === 'share') {
      this.tier = 'interruptible';
      this.#rankAll(this.#interruptible.splice(0));
      return true;
    }
    if (this.tier === 'interruptible') {
      this.tier = 'demoted';
      this.#rankAll(this.#demoted.splice(0));
      return true;
    }
    const next = this.#bands.pop();
    if (!next) return false;
    this.band = next.band;
    this.tier = 'aged';
    for (const pending of next.classes) {
      const head = headOf(pending);
      if (!head) continue;
      const turn = { pending, job: head.job, sinceMs: head.sinceMs };
      if (this.#isAged(turn)) this.#aged.push(turn);
      else this.#toShare(turn);
    }
    return true;
  }

  #toShare(turn: Turn): void {
    const { interruptible } = turn.pending.request.placement;
    (interruptible ? this.#interruptible : this.#normal).push(turn);
  }

  /** Turns into users into tenants: each is ranked when what it ranks by is complete. */
  #rankAll(turns: Turn[]): void {
    const users = new Map<Account, UserRank>();
    for (const turn of turns) {
      const { user } = turn.pending.owner;
      let rank = users.get(user);
      if (!rank) users.set(user, (rank = this.#rank(user, turn.job, olderJob)));
      rank.items.push(turn);
    }
    const tenants = new Map<Account, TenantRank>();
    for (const rank of users.values()) {
      const turn = rank.items.top() as Turn;
      rank.job = turn.job;
      const { tenant } = turn.pending.owner;
      let whole = tenants.get(tenant);
      if (!whole) tenants.set(tenant, (whole = this.#rank(tenant, turn.job, comesFirst)));
      whole.items.push(rank);
    }
    for (const rank of tenants.values()) {
      rank.job = (rank.items.top() as UserRank).job;
      this.#tenants.push(rank);
    }
  }

  #rank<Item>(account: Account, job: JobId, before: (a: Item, b: Item) => boolean): Rank<Item> {
    return { account, share: this.#shareOf(account), job, items: new Heap<Item>(before) };
  }

  #shareOf(account: Account): number {
    return account.share(this.#options.totals, this.#options.nowMs, this.#options.halfLifeMs);
  }

  #isAged({ sinceMs }: Turn): boolean {
    return this.#options.nowMs - sinceMs >= this.#options.ageingMs;
  }
}

function headOf(pending: PendingClass): { job: JobId; sinceMs: number } | undefined {
  return pending.queue.peek()?.[0];
}

function waitsLonger(a: Turn, b: Turn): boolean {
  return a.sinceMs === b.sinceMs ? a.job < b.job : a.sinceMs < b.sinceMs;
}

function olderJob(a: Turn, b: Turn): boolean {
  return a.job < b.job;
}

function comesFirst<Item>(a: Rank<Item>, b: Rank<Item>): boolean {
  return a.share === b.share ? a.job < b.job : a.share < b.share;
}
