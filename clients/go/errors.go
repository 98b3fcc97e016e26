package heliograph

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Error is a response of the service that is an error.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is what programs tell errors apart by; empty when something between you and the service responded.
	Code ErrorCode
	// Message is for people and may change.
	Message string
	// Param names the parameter or member that is wrong.
	Param string
	// DocURL leads to an explanation of the code.
	DocURL string
	// RequestID names the request in the logs of the service.
	RequestID string
	// Advice says what to do about it, where the code alone does not tell.
	Advice string
	// ServiceMessageID is the message that was not sent.
	ServiceMessageID string
	// Upstream is the upstream platform's error as it came.
	Upstream json.RawMessage
	// RetryAfter says how long to wait before trying again; 0 when the response does not say it.
	RetryAfter time.Duration
	// Body is the response as it came.
	Body []byte
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("heliograph: HTTP %d", e.Status)
	}
	return fmt.Sprintf("heliograph: %d %s: %s (%s)", e.Status, e.Code, e.Message, e.RequestID)
}

// ConnectionError says that there was no response: the request may or may not have been carried out.
type ConnectionError struct {
	Err     error
	timeout bool
}

func (e *ConnectionError) Error() string { return "heliograph: no response: " + e.Err.Error() }

func (e *ConnectionError) Unwrap() error { return e.Err }

// Timeout tells whether the service was silent for too long.
func (e *ConnectionError) Timeout() bool {
	var inner interface{ Timeout() bool }
	return e.timeout || (errors.As(e.Err, &inner) && inner.Timeout())
}

// HasCode tells whether an error is a response with one of the codes.
func HasCode(err error, codes ...ErrorCode) bool {
	var response *Error
	if !errors.As(err, &response) {
		return false
	}
	for _, code := range codes {
		if response.Code == code {
			return true
		}
	}
	return false
}

const longestErrorBytes = 1 << 20

func errorOf(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longestErrorBytes))
	if err != nil {
		return &ConnectionError{Err: err}
	}
	var given struct {
		Error struct {
			Code             ErrorCode       `json:"code"`
			Message          string          `json:"message"`
			Param            string          `json:"param"`
			DocURL           string          `json:"docUrl"`
			RequestID        string          `json:"requestId"`
			Advice           string          `json:"advice"`
			ServiceMessageID string          `json:"serviceMessageId"`
			Upstream         json.RawMessage `json:"upstream"`
		} `json:"error"`
	}
	// Anything else than the service's own error leaves the members empty.
	_ = json.Unmarshal(body, &given)
	result := &Error{
		Status:           response.StatusCode,
		Code:             given.Error.Code,
		Message:          given.Error.Message,
		Param:            given.Error.Param,
		DocURL:           given.Error.DocURL,
		RequestID:        given.Error.RequestID,
		Advice:           given.Error.Advice,
		ServiceMessageID: given.Error.ServiceMessageID,
		Upstream:         given.Error.Upstream,
		Body:             body,
	}
	if result.RequestID == "" {
		result.RequestID = response.Header.Get("X-Request-Id")
	}
	result.RetryAfter, _ = retryAfterOf(response.Header, time.Now())
	return result
}

// retryAfterOf reads Retry-After, which is a number of seconds or a date.
func retryAfterOf(header http.Header, now time.Time) (time.Duration, bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
