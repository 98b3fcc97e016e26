import type { GivenSelection } from '../../../features/replays/replay-input.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { type FormValues, formLine, formLines } from '../form-values.ts';

export type ReplayFormValues = {
  by: string;
  endpointId: string;
  from: string;
  to: string;
  eventTypes: string[];
  states: string[];
  ids: string;
};

/** The form that is sent; `change` goes back to the choice. */
export const REPLAY_FIELDS = {
  by: formLine(),
  endpointId: formLine(),
  from: formLine(),
  to: formLine(),
  eventTypes: formLines(100),
  states: formLines(100),
  ids: formLine(131_072),
  change: formLine(),
};

/** What most people come for: what did not arrive. */
export const NEW_REPLAY: ReplayFormValues = {
  by: 'filter',
  endpointId: '',
  from: '',
  to: '',
  eventTypes: [],
  states: ['failed', 'dropped'],
  ids: '',
};

export function readReplayForm(form: FormValues): ReplayFormValues {
  return {
    by: form.text('by') === 'ids' ? 'ids' : 'filter',
    endpointId: form.text('endpointId').trim(),
    from: form.text('from').trim(),
    to: form.text('to').trim(),
    eventTypes: form.list('eventTypes'),
    states: form.list('states'),
    ids: form.text('ids'),
  };
}

/** What the form selects. No box ticked means no restriction. Throws RequestError `invalid_value`. */
export function selectionOf(values: ReplayFormValues): GivenSelection {
  if (values.by === 'ids') {
    return { deliveryIds: values.ids.split(/[\s,;]+/).filter((id) => id !== '') };
  }
  return {
    endpointId: values.endpointId || undefined,
    from: timeIn('from', values.from),
    to: timeIn('to', values.to),
    eventTypes: values.eventTypes.length === 0 ? undefined : values.eventTypes,
    states: values.states.length === 0 ? undefined : values.states,
  };
}

/** A `datetime-local` value, UTC. */
function timeIn(param: string, text: string): Date | undefined {
  if (text === '') return undefined;
  const time = new Date(`${text}Z`);
  if (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/.test(text) && Number.isFinite(time.getTime())) return time;
  throw new RequestError('invalid_value', 'Write a time such as 2027-01-31T12:00.', param);
}
