package heliograph

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
)

// StreamedEvent is an event without its DeliverySummary.
type StreamedEvent struct {
	Event
	// Cursor is where a stream continues behind this event.
	Cursor string `json:"-"`
}

// StreamEvents gives live events, about two seconds behind, until the service ends the stream, which it does when it stops, or
// the connection breaks (a ConnectionError). Begin again with the cursor of the last event, and nothing is missed. Types are separated by
// commas; without any it is the six. Without a cursor the stream begins now.
func (c *Client) StreamEvents(ctx context.Context, types, cursor string) iter.Seq2[StreamedEvent, error] {
	return func(yield func(StreamedEvent, error) bool) {
		request := requestTo(http.MethodGet, "/api/external/events/stream")
		request.query("types", types)
		request.query("cursor", cursor)
		response, err := c.send(ctx, request)
		if err != nil {
			yield(StreamedEvent{}, err)
			return
		}
		defer response.Body.Close()
		reader := bufio.NewReader(response.Body)
		for {
			block, err := readBlock(reader)
			if errors.Is(err, io.EOF) || block["event"] == "end" {
				return
			}
			event := StreamedEvent{Cursor: block["id"]}
			if err == nil && block["data"] != "" {
				err = json.Unmarshal([]byte(block["data"]), &event.Event)
			}
			if err != nil {
				yield(StreamedEvent{}, err)
				return
			}
			// Every 15 seconds there is a comment without data.
			if block["data"] != "" && !yield(event, nil) {
				return
			}
		}
	}
}

// readBlock reads the fields up to an empty line. The service writes each in one line.
func readBlock(reader *bufio.Reader) (map[string]string, error) {
	block := map[string]string{}
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return block, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return block, nil
		}
		name, value, _ := strings.Cut(line, ":")
		block[name] = strings.TrimPrefix(value, " ")
	}
}
