import { Command } from 'commander';
import { endpointForOperator } from '../../endpoints/endpoints.ts';
import { type AdminOutcome, adminAction, alignedFields } from '../../platform/cli/admin-action.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/client-connection.ts';
import { sendTestEvent, type TestEventResult } from '../test-event.ts';

/** Beside the time limit of the attempt itself. */
const SPARE_MS = 5_000;

/** `admin endpoint test <id>` */
export function endpointTestCommand(): Command {
  const command = new Command('test')
    .description(
      'send the test event to an endpoint, whatever its mode and filters, and wait for the response; ' +
        'the exit code is 0 when the event was stored, the outcome is in "state"',
    )
    .argument('<id>', 'the id of the endpoint');
  return adminAction(command, 'endpoint test 3 --json', async ({ tools, args }) => {
    const { config, database, actor } = tools;
    const endpoint = await endpointForOperator(tools, args[0] ?? '');
    // Loading the Temporal client takes half a second, which no other command needs.
    const { openDeliveryStarter } = await import('../delivery-starter.ts');
    const starter = openDeliveryStarter(config);
    try {
      const waitMs = config.webhooks.timeoutMs + SPARE_MS;
      const testTools = { database, actor, waitMs, startDelivery: starter.start };
      const result = await sendTestEvent(testTools, endpoint.wabaId, endpoint.id);
      return describeResult(config, endpoint.url, result);
    } finally {
      await starter.close();
    }
  });
}

function describeResult(
  { temporal }: Config,
  endpointUrl: string,
  { startError, ...result }: TestEventResult,
): AdminOutcome {
  const url = workflowUrl(temporal, result.workflowId);
  const notes =
    startError !== null
      ? [
          `Temporal at ${temporal.address} did not take the workflow (${firstLine(startError)}); ` +
            `the event is queued; the worker sends it when Temporal is up again: admin find ${result.eventId}`,
        ]
      : result.state === 'pending'
        ? [`there is no outcome yet; is a worker running? Look again with: admin find ${result.eventId}`]
        : [];
  return {
    json: { ...result, workflowUrl: url },
    notes,
    text: alignedFields([
      ['state', result.state],
      ['URL', endpointUrl],
      ['status', result.statusCode],
      ['error', result.error],
      ['duration', result.durationMs === null ? null : `${result.durationMs.toFixed(1)} ms`],
      ['eventId', result.eventId],
      ['deliveryId', result.deliveryId],
      ['workflow', url],
    ]),
  };
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}
