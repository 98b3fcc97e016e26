package heliograph

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// Platform has a method for each operation of the platform API, for the operator's own program. It may be used by several
// goroutines.
type Platform struct{ client *Client }

// NewPlatform makes a client of the platform API. The platform key begins with hp_; the operator of the service makes it. All
// else is as for New.
func NewPlatform(baseURL, platformKey string, options ...Option) *Platform {
	return &Platform{newClient(baseURL, platformKey, "platform key is none: it is hp_", options)}
}

// AllTenants gives every tenant of ListTenants.
func (p *Platform) AllTenants(ctx context.Context, params ListTenantsParams) iter.Seq2[Tenant, error] {
	return entries(params.Cursor, func(cursor string) (page[Tenant], error) {
		params.Cursor = cursor
		list, err := p.ListTenants(ctx, &params)
		return pageOf(list, err, func(l *TenantList) page[Tenant] { return page[Tenant]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllSetupLinks gives every link of ListSetupLinks.
func (p *Platform) AllSetupLinks(ctx context.Context, externalID string, params ListSetupLinksParams) iter.Seq2[SetupLink, error] {
	return entries(params.Cursor, func(cursor string) (page[SetupLink], error) {
		params.Cursor = cursor
		list, err := p.ListSetupLinks(ctx, externalID, &params)
		return pageOf(list, err, func(l *SetupLinkList) page[SetupLink] { return page[SetupLink]{l.Data, l.HasMore, l.NextCursor} })
	})
}

// AllOperationEvents gives every event of ListOperationEvents, to the end of the feed. To go on from there later, ask for the
// pages yourself and keep NextCursor.
func (p *Platform) AllOperationEvents(ctx context.Context, params ListOperationEventsParams) iter.Seq2[OperationEvent, error] {
	return entries(params.Cursor, func(cursor string) (page[OperationEvent], error) {
		params.Cursor = cursor
		list, err := p.ListOperationEvents(ctx, &params)
		return pageOf(list, err, func(l *OperationEventList) page[OperationEvent] {
			return page[OperationEvent]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// AllPlatformAuditEntries gives every entry of ListPlatformAudit.
func (p *Platform) AllPlatformAuditEntries(ctx context.Context, params ListPlatformAuditParams) iter.Seq2[PlatformAuditEntry, error] {
	return entries(params.Cursor, func(cursor string) (page[PlatformAuditEntry], error) {
		params.Cursor = cursor
		list, err := p.ListPlatformAudit(ctx, &params)
		return pageOf(list, err, func(l *PlatformAuditEntryList) page[PlatformAuditEntry] {
			return page[PlatformAuditEntry]{l.Data, l.HasMore, l.NextCursor}
		})
	})
}

// GetTenantUsageFile reads the rows of GetTenantUsage as CSV.
func (p *Platform) GetTenantUsageFile(ctx context.Context, params *GetTenantUsageParams) (io.ReadCloser, error) {
	request := requestTo(http.MethodGet, "/api/platform/usage/messages.csv")
	request.query("from", params.From)
	request.query("to", params.To)
	request.query("granularity", params.Granularity)
	request.query("groupBy", params.GroupBy)
	request.query("tenant", params.Tenant)
	response, err := p.client.send(ctx, request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// VerifyOperationEvent checks the signature and the age of a request to a hook and returns its event, as VerifyWebhook does. The
// secret is that of the hook. A test of the hook has the type hook.test.
func VerifyOperationEvent(body []byte, headers http.Header, secret string, options ...WebhookOption) (*OperationEvent, error) {
	if _, err := verified(body, headers, secret, options); err != nil {
		return nil, err
	}
	event := new(OperationEvent)
	if err := json.Unmarshal(body, event); err != nil {
		return nil, fmt.Errorf("heliograph: the event is not what it should be: %w", err)
	}
	return event, nil
}
