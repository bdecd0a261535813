import { sourceContract } from '../contract/source.contract.ts';
import { startPostgresHarness } from '../contract/source-postgres-harness.ts';

sourceContract('postgres', startPostgresHarness);
