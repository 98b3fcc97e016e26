import { Command } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { retryDelivery } from '../retry-now.ts';
import { cancelDelivery, wabaOfDelivery } from '../search/shown-delivery.ts';

const EXAMPLE_ID = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062';

/** `admin delivery …` */
export function deliveryCommand(): Command {
  return new Command('delivery')
    .description('deliveries that wait: make the next attempt now, or drop them; see also: find, replay')
    .addCommand(retryCommand())
    .addCommand(dropCommand());
}

function retryCommand(): Command {
  const command = new Command('retry')
    .description('make the next attempt of a delivery now; those behind it follow in order')
    .argument('<id>', 'of the delivery (dlv_…)');
  return adminAction(command, `delivery retry ${EXAMPLE_ID}`, async ({ tools, args }) => {
    const [id = ''] = args;
    const retried = await retryDelivery(tools, await wabaOfDelivery(tools, id), id);
    const text = retried.retried
      ? `Delivery ${id} is attempted now.`
      : `Delivery ${id} was due already; it is attempted as soon as its endpoint takes it.`;
    return { json: retried, text };
  });
}

function dropCommand(): Command {
  const command = new Command('drop')
    .description('drop a delivery: it stays in the log, and the next of its ordering key is sent')
    .argument('<id>', 'of the delivery (dlv_…)');
  return adminAction(command, `delivery drop ${EXAMPLE_ID}`, async ({ tools, args }) => {
    const [id = ''] = args;
    const dropped = await cancelDelivery(tools, await wabaOfDelivery(tools, id), id);
    return { json: dropped, text: `Delivery ${id} is dropped; a replay can send it.` };
  });
}
