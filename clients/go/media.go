package heliograph

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
)

// UploadMedia stores a file to send, which is read while it is sent. A MIME type is such as image/jpeg. A broken upload is
// not repeated.
func (c *Client) UploadMedia(ctx context.Context, file io.Reader, fileName, mimeType string) (*UploadedMedia, error) {
	stored := new(UploadedMedia)
	return stored, c.upload(ctx, "/api/external/media", file, fileName, mimeType, stored)
}

// UploadTemplateMedia gives upstream an example for the header of a template, which names the handle.
func (c *Client) UploadTemplateMedia(ctx context.Context, file io.Reader, fileName, mimeType string) (*TemplateMedia, error) {
	given := new(TemplateMedia)
	return given, c.upload(ctx, "/api/external/template-media", file, fileName, mimeType, given)
}

func (c *Client) upload(ctx context.Context, path string, file io.Reader, fileName, mimeType string, into any) error {
	if c.err != nil {
		return c.err
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() { writer.CloseWithError(writeForm(form, file, fileName, mimeType)) }()
	// Ends the goroutine when the request ended early.
	defer reader.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.baseURL+path, reader)
	if err != nil {
		return fmt.Errorf("heliograph: %w", err)
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := c.do(request, true)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

var quoted = strings.NewReplacer("\"", "%22", "\r", "%0D", "\n", "%0A")

func writeForm(form *multipart.Writer, file io.Reader, fileName, mimeType string) error {
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", fmt.Sprintf(`form-data; name="file"; filename="%s"`, quoted.Replace(fileName)))
	header.Set("Content-Type", mimeType)
	part, err := form.CreatePart(header)
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, file); err != nil {
		return err
	}
	return form.Close()
}

// Download is a file that comes: read it, and close it.
type Download struct {
	io.ReadCloser
	// MIMEType is as the service found it in the bytes.
	MIMEType string
	// SizeBytes is -1 when the service does not say it.
	SizeBytes int64
}

// DownloadMedia reads the file behind a mediaUrl of an event or a message. The API key is not sent there.
func (c *Client) DownloadMedia(ctx context.Context, mediaURL string) (*Download, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, mediaURL, nil)
	if err != nil {
		return nil, fmt.Errorf("heliograph: %w", err)
	}
	response, err := c.do(request, false)
	if err != nil {
		return nil, err
	}
	return &Download{response.Body, response.Header.Get("Content-Type"), response.ContentLength}, nil
}

// ExportCustomer reads the archive (ZIP) of what is stored of a customer.
func (c *Client) ExportCustomer(ctx context.Context, body ExportRequest) (io.ReadCloser, error) {
	request := requestTo(http.MethodPost, "/api/external/exports")
	request.body = body
	response, err := c.send(ctx, request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
