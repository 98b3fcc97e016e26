package heliograph

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	firstWait      = 500 * time.Millisecond
	longestBackOff = 8 * time.Second
	// The service takes a form for a minute, before it responds.
	uploadTimeout = 90 * time.Second
	sendPath      = "/api/external/messages"
	searchPath    = "/api/external/conversations/search"
)

var errSilent = errors.New("the service was silent for too long")

// policy says how requests are repeated, and how long they may take.
type policy struct {
	retries       int
	timeout       time.Duration
	maxRetryAfter time.Duration
}

// do repeats what is harmless to repeat: reads, and sends with their Idempotency-Key.
func (p policy) do(doer Doer, request *http.Request) (*http.Response, error) {
	retries := 0
	if isRepeatable(request) {
		retries = p.retries
	}
	for attempt := 0; ; attempt++ {
		if attempt > 0 && request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request.Body = body
		}
		response, err := p.attempt(doer, request)
		wait, again := p.waitBefore(attempt, response, err)
		if attempt >= retries || !again {
			return response, err
		}
		if response != nil {
			response.Body.Close()
		}
		timer := time.NewTimer(wait)
		select {
		case <-request.Context().Done():
			timer.Stop()
			return nil, request.Context().Err()
		case <-timer.C:
		}
	}
}

func isSend(request *http.Request) bool {
	return request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, sendPath)
}

func isRepeatable(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		return isSend(request) || strings.HasSuffix(request.URL.Path, searchPath)
	}
	return false
}

// waitBefore says how long to wait before the next attempt, and whether there should be one.
func (p policy) waitBefore(attempt int, response *http.Response, err error) (time.Duration, bool) {
	step := min(firstWait<<min(attempt, 10), longestBackOff)
	// Between half of the step and all of it, so that clients do not return together.
	backOff := step/2 + rand.N(step/2)
	if err != nil {
		var connection *ConnectionError
		return backOff, errors.As(err, &connection)
	}
	wait, isNamed := retryAfterOf(response.Header, time.Now())
	// The service repeats the first response to an Idempotency-Key, whatever it was.
	if !isTemporary(response.StatusCode, isNamed) || response.Header.Get("Idempotent-Replayed") != "" {
		return 0, false
	}
	return max(wait, backOff), wait <= p.maxRetryAfter
}

func isTemporary(status int, hasRetryAfter bool) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return hasRetryAfter
	}
	return false
}

// attempt makes one request. A response of JSON is read here, so that one that breaks off counts as none.
func (p policy) attempt(doer Doer, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	silence := &silence{timeout: p.timeout, cancel: cancel}
	if isUpload(request) {
		silence.begin(max(p.timeout, uploadTimeout))
	} else {
		silence.begin(p.timeout)
	}
	response, err := doer.Do(request.WithContext(ctx))
	silence.pause()
	if err == nil {
		response.Body = &watchedBody{inner: response.Body, silence: silence, ctx: ctx}
		if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
			return response, nil
		}
		var body []byte
		body, err = io.ReadAll(response.Body)
		response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err == nil {
		return response, nil
	}
	cancel(nil)
	if request.Context().Err() != nil {
		return nil, request.Context().Err()
	}
	var connection *ConnectionError
	if errors.As(err, &connection) {
		return nil, connection
	}
	return nil, connectionError(ctx, err)
}

func connectionError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &ConnectionError{Err: errSilent, timeout: true}
	}
	return &ConnectionError{Err: err}
}

func isUpload(request *http.Request) bool {
	return strings.HasPrefix(request.Header.Get("Content-Type"), "multipart/form-data")
}

// silence ends a request when nothing comes from the service for too long.
type silence struct {
	timeout time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer
}

func (s *silence) begin(timeout time.Duration) {
	if s.timeout > 0 {
		s.timer = time.AfterFunc(timeout, func() { s.cancel(errSilent) })
	}
}

func (s *silence) pause() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// watchedBody fails when nothing more comes. Time counts while somebody reads, not while the reader is busy.
type watchedBody struct {
	inner   io.ReadCloser
	silence *silence
	ctx     context.Context
}

func (b *watchedBody) Read(buffer []byte) (int, error) {
	b.silence.begin(b.silence.timeout)
	count, err := b.inner.Read(buffer)
	b.silence.pause()
	if err != nil && !errors.Is(err, io.EOF) {
		err = connectionError(b.ctx, err)
	}
	return count, err
}

func (b *watchedBody) Close() error {
	b.silence.pause()
	err := b.inner.Close()
	b.silence.cancel(nil)
	return err
}
