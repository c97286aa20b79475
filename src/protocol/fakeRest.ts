/** The calls of a fake coordinator that know nothing of its jobs. */
import { fakeAccounts } from './fakeAccounts.ts';
import { fakeFiles } from './fakeFiles.ts';
import { fakePeople } from './fakePeople.ts';
import { fakePools } from './fakePools.ts';

export class FakeRest {
  readonly accounts = fakeAccounts();
  readonly plan = this.accounts.plan;
  readonly listBudgets = this.accounts.listBudgets;
  readonly setBudget = this.accounts.setBudget;
  readonly deleteBudget = this.accounts.deleteBudget;
  readonly usage = this.accounts.usage;
  readonly #people = fakePeople();
  readonly admit = this.#people.admit;
  readonly listTenants = this.#people.listTenants;
  readonly setTenant = this.#people.setTenant;
  readonly listUsers = this.#people.listUsers;
  readonly setUser = this.#people.setUser;
  readonly removeUser = this.#people.removeUser;
  readonly fleet = fakePools();
  readonly listPools = this.fleet.listPools;
  readonly lookAtPool = this.fleet.lookAtPool;
  readonly listInstances = this.fleet.listInstances;
  readonly getInstance = this.fleet.getInstance;
  readonly destroyInstance = this.fleet.destroyInstance;
  readonly listHosts = this.fleet.listHosts;
  readonly setHost = this.fleet.setHost;
  readonly #files = fakeFiles();
  readonly listCheckpoints = this.#files.listCheckpoints;
  readonly requestCheckpoint = this.#files.requestCheckpoint;
  readonly addCheckpoint = this.#files.addCheckpoint;
  readonly attemptAccess = this.#files.attemptAccess;
  readonly attemptSecrets = this.#files.attemptSecrets;
  readonly attemptTokens = this.#files.attemptTokens;
  readonly exchangeCommands = this.#files.exchangeCommands;
  readonly listAudit = this.#files.listAudit;
  readonly policy = this.#files.policy;
  readonly recordAccess = this.#files.recordAccess;
  readonly listData = this.#files.listData;
  readonly putData = this.#files.putData;
  readonly removeData = this.#files.removeData;
  readonly namedBlobs = this.#files.namedBlobs;
}
