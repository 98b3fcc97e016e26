package heliograph

import (
	"context"
	"iter"
)

// page is what every list of the API has.
type page[T any] struct {
	data    []T
	hasMore bool
	next    *string
}

// entries asks for a page when its first entry is needed. After an error nothing more comes.
func entries[T any](cursor string, pageAt func(cursor string) (page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			current, err := pageAt(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, entry := range current.data {
				if !yield(entry, nil) {
					return
				}
			}
			// In ascending order there is a cursor behind the last page too, to continue from later.
			if !current.hasMore || current.next == nil {
				return
			}
			cursor = *current.next
		}
	}
}

// pageOf keeps the error of a list, whose pages are of different types.
func pageOf[L any, T any](list *L, err error, parts func(*L) page[T]) (page[T], error) {
	if err != nil {
		return page[T]{}, err
	}
	return parts(list), nil
}

// AllConversations gives every conversation of ListConversations.
func (c *Client) AllConversations(ctx context.Context, params ListConversationsParams) iter.Seq2[Conversation, error] {
	return entries(params.Cursor, func(cursor string) (page[Conversation], error) {
		params.Cursor = cursor
		list, err := c.ListConversations(ctx, &params)
		return pageOf(list, err, func(l *ConversationList) page[Conversation] {
			return page[Conversation]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllFoundConversations gives every conversation of SearchConversations.
func (c *Client) AllFoundConversations(ctx context.Context, search ConversationSearch) iter.Seq2[Conversation, error] {
	return entries(search.Cursor, func(cursor string) (page[Conversation], error) {
		search.Cursor = cursor
		list, err := c.SearchConversations(ctx, search)
		return pageOf(list, err, func(l *ConversationList) page[Conversation] {
			return page[Conversation]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllConversationMessages gives every message of ListConversationMessages.
func (c *Client) AllConversationMessages(ctx context.Context, id string, params ListConversationMessagesParams) iter.Seq2[Message, error] {
	return entries(params.Cursor, func(cursor string) (page[Message], error) {
		params.Cursor = cursor
		list, err := c.ListConversationMessages(ctx, id, &params)
		return pageOf(list, err, func(l *MessageList) page[Message] { return page[Message]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllEvents gives every event of ListEvents.
func (c *Client) AllEvents(ctx context.Context, params ListEventsParams) iter.Seq2[Event, error] {
	return entries(params.Cursor, func(cursor string) (page[Event], error) {
		params.Cursor = cursor
		list, err := c.ListEvents(ctx, &params)
		return pageOf(list, err, func(l *EventList) page[Event] { return page[Event]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllReplays gives every replay of ListReplays.
func (c *Client) AllReplays(ctx context.Context, params ListReplaysParams) iter.Seq2[Replay, error] {
	return entries(params.Cursor, func(cursor string) (page[Replay], error) {
		params.Cursor = cursor
		list, err := c.ListReplays(ctx, &params)
		return pageOf(list, err, func(l *ReplayList) page[Replay] { return page[Replay]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllBroadcasts gives every broadcast of ListBroadcasts.
func (c *Client) AllBroadcasts(ctx context.Context, params ListBroadcastsParams) iter.Seq2[Broadcast, error] {
	return entries(params.Cursor, func(cursor string) (page[Broadcast], error) {
		params.Cursor = cursor
		list, err := c.ListBroadcasts(ctx, &params)
		return pageOf(list, err, func(l *BroadcastList) page[Broadcast] { return page[Broadcast]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllBroadcastRecipients gives every recipient of ListBroadcastRecipients.
func (c *Client) AllBroadcastRecipients(ctx context.Context, id string, params ListBroadcastRecipientsParams) iter.Seq2[BroadcastRecipient, error] {
	return entries(params.Cursor, func(cursor string) (page[BroadcastRecipient], error) {
		params.Cursor = cursor
		list, err := c.ListBroadcastRecipients(ctx, id, &params)
		return pageOf(list, err, func(l *BroadcastRecipientList) page[BroadcastRecipient] {
			return page[BroadcastRecipient]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllWebhookEndpoints gives every endpoint of ListWebhookEndpoints.
func (c *Client) AllWebhookEndpoints(ctx context.Context, params ListWebhookEndpointsParams) iter.Seq2[WebhookEndpoint, error] {
	return entries(params.Cursor, func(cursor string) (page[WebhookEndpoint], error) {
		params.Cursor = cursor
		list, err := c.ListWebhookEndpoints(ctx, &params)
		return pageOf(list, err, func(l *WebhookEndpointList) page[WebhookEndpoint] {
			return page[WebhookEndpoint]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllEndpointAlerts gives every alert of ListEndpointAlerts.
func (c *Client) AllEndpointAlerts(ctx context.Context, params ListEndpointAlertsParams) iter.Seq2[EndpointAlert, error] {
	return entries(params.Cursor, func(cursor string) (page[EndpointAlert], error) {
		params.Cursor = cursor
		list, err := c.ListEndpointAlerts(ctx, &params)
		return pageOf(list, err, func(l *EndpointAlertList) page[EndpointAlert] {
			return page[EndpointAlert]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllTemplates gives every template of ListTemplates.
func (c *Client) AllTemplates(ctx context.Context, params ListTemplatesParams) iter.Seq2[ListTemplatesResultDataItem, error] {
	return entries(params.Cursor, func(cursor string) (page[ListTemplatesResultDataItem], error) {
		params.Cursor = cursor
		list, err := c.ListTemplates(ctx, &params)
		return pageOf(list, err, func(l *ListTemplatesResult) page[ListTemplatesResultDataItem] {
			return page[ListTemplatesResultDataItem]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllErasures gives every erasure of ListErasures.
func (c *Client) AllErasures(ctx context.Context, params ListErasuresParams) iter.Seq2[Erasure, error] {
	return entries(params.Cursor, func(cursor string) (page[Erasure], error) {
		params.Cursor = cursor
		list, err := c.ListErasures(ctx, &params)
		return pageOf(list, err, func(l *ErasureList) page[Erasure] { return page[Erasure]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllOptOuts gives every opt-out of SearchOptOuts.
func (c *Client) AllOptOuts(ctx context.Context, search OptOutSearch) iter.Seq2[OptOut, error] {
	return entries(search.Cursor, func(cursor string) (page[OptOut], error) {
		search.Cursor = cursor
		list, err := c.SearchOptOuts(ctx, search)
		return pageOf(list, err, func(l *OptOutList) page[OptOut] { return page[OptOut]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllMessageTemplates gives every message template of ListMessageTemplates.
func (c *Client) AllMessageTemplates(ctx context.Context, params ListMessageTemplatesParams) iter.Seq2[MessageTemplate, error] {
	return entries(params.Cursor, func(cursor string) (page[MessageTemplate], error) {
		params.Cursor = cursor
		list, err := c.ListMessageTemplates(ctx, &params)
		return pageOf(list, err, func(l *MessageTemplateList) page[MessageTemplate] {
			return page[MessageTemplate]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllScheduledMessages gives every scheduled message of ListScheduledMessages.
func (c *Client) AllScheduledMessages(ctx context.Context, params ListScheduledMessagesParams) iter.Seq2[ScheduledMessage, error] {
	return entries(params.Cursor, func(cursor string) (page[ScheduledMessage], error) {
		params.Cursor = cursor
		list, err := c.ListScheduledMessages(ctx, &params)
		return pageOf(list, err, func(l *ScheduledMessageList) page[ScheduledMessage] {
			return page[ScheduledMessage]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}
