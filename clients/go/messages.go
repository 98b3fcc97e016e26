package heliograph

import (
	"context"
	"encoding/json"
	"net/http"
)

// MessageToSend is one of the Send types, or a RawMessage.
type MessageToSend interface{ messageToSend() }

// RawMessage is the message object of the upstream platform with phoneNumberId, for types and members without a type here.
type RawMessage map[string]any

func (RawMessage) messageToSend() {}

// Send sends a message once, however often the connection fails: the client makes an Idempotency-Key and repeats the request
// with it. If your own program may repeat the call, use SendMessage and give a key.
func (c *Client) Send(ctx context.Context, message MessageToSend) (*SentMessage, error) {
	return c.SendMessage(ctx, nil, message)
}

// CountReplay says what StartReplay would send, and sends nothing.
func (c *Client) CountReplay(ctx context.Context, body ReplayRequest) (*ReplayCount, error) {
	dryRun := true
	body.DryRun = &dryRun
	request := requestTo(http.MethodPost, "/api/external/replays")
	request.body = body
	return call[ReplayCount](ctx, c, request)
}

// Nullable is a member that is left out, null, or has a value: nil, Null and Value.
type Nullable[T any] map[bool]T

// Value is a member with a value.
func Value[T any](value T) Nullable[T] { return Nullable[T]{true: value} }

// Null is a member that is null.
func Null[T any]() Nullable[T] { return Nullable[T]{false: *new(T)} }

// MarshalJSON writes null or the value.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if value, hasValue := n[true]; hasValue {
		return json.Marshal(value)
	}
	return []byte("null"), nil
}

// Ptr makes a pointer to a value, for members that may be missing.
func Ptr[T any](value T) *T { return &value }
