package work

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

// errAway says that the server did not answer, or could not now.
var errAway = errors.New("no answer from the server")

// away reports whether a request may succeed later: server, database or job queue are not reachable.
func away(err error) bool {
	return errors.Is(err, errAway) || errors.Is(err, store.ErrAway) || errors.Is(err, queue.ErrAway)
}

// Remote is a server elsewhere, over HTTP.
type Remote struct {
	URL, Token string
	Client     *http.Client
}

// ProblemHeader holds the detail of a problem, escaped as a part of a path.
const ProblemHeader = "Opmeter-Problem"

// maxAnswer bounds an answer of the server in bytes; files are not answers.
const maxAnswer = 4 << 20

// Problem is an error of the server.
type Problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
	final bool // the same request has the same answer
}

// Is makes a problem of the server alone one that may be over later.
func (p *Problem) Is(target error) bool {
	return target == errAway && (p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests)
}

func (p *Problem) Error() string {
	out := fmt.Sprintf("the server answers %d: %s", p.Status, p.Detail)
	for _, e := range p.Errors {
		out += "; " + strings.TrimSpace(e.Location+" "+e.Message)
	}
	return out
}

// Call sends a request of the API and reads the answer, unless out is nil.
func (r *Remote) Call(ctx context.Context, method, path string, in, out any) (status int, err error) {
	return r.CallWith(ctx, method, path, in, out, http.Header{})
}

// CallWith is [Remote.Call] with more in the header.
func (r *Remote) CallWith(ctx context.Context, method, path string, in, out any, header http.Header) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := jsonx.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	header.Set("Content-Type", "application/json")
	res, err := r.send(ctx, method, path, body, header)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if out != nil && (res.StatusCode == http.StatusOK || res.StatusCode == http.StatusCreated) {
		return res.StatusCode, jsonx.UnmarshalRead(io.LimitReader(res.Body, maxAnswer), out)
	}
	return res.StatusCode, nil
}

// send sends a request. An answer that is an error is returned as one.
func (r *Remote) send(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.URL, "/")+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	if s, ok := body.(*io.SectionReader); ok {
		req.ContentLength = s.Size()
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	res, err := r.Client.Do(req)
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		err = fmt.Errorf("%w: if the server made its certificate itself, set OPMETER_CA to a copy of the file that opmeter serve names", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	p := &Problem{}
	if jsonx.UnmarshalRead(io.LimitReader(res.Body, maxAnswer), p) != nil || p.Detail == "" {
		p.Detail = http.StatusText(res.StatusCode)
		// The answer to HEAD has no text.
		if detail, err := url.PathUnescape(res.Header.Get(ProblemHeader)); err == nil && detail != "" {
			p.Detail = detail
		}
		if res.StatusCode == http.StatusUnauthorized {
			p.Detail = "it needs a valid token in OPMETER_TOKEN"
		}
	}
	p.Status = res.StatusCode
	if method != http.MethodGet && p.Status == http.StatusConflict && strings.HasPrefix(path, "/leases") {
		return nil, errors.Join(queue.ErrLate, p)
	}
	return nil, p
}

// Lease implements [Server].
func (r *Remote) Lease(ctx context.Context, worker string, o *queue.Offers) (*queue.Lease, error) {
	var l queue.Lease
	status, err := r.Call(ctx, http.MethodPost, "/leases", map[string]any{"worker": worker, "offers": o}, &l)
	if err != nil || status != http.StatusOK {
		return nil, err
	}
	return &l, nil
}

// Renew implements [Server].
func (r *Remote) Renew(ctx context.Context, n Renewal) error {
	var out struct {
		Stop bool `json:"stop"`
	}
	_, err := r.Call(ctx, http.MethodPut, "/leases", n, &out)
	if err == nil && out.Stop {
		err = queue.ErrStop
	}
	return err
}

// End implements [Server].
func (r *Remote) End(ctx context.Context, e End) error {
	_, err := r.Call(ctx, http.MethodPost, "/leases/end", e, nil)
	return err
}

// Fetch implements [Server].
func (r *Remote) Fetch(ctx context.Context, hash, to string) error {
	res, err := r.send(ctx, http.MethodGet, "/files/"+hash, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), res.Body)
	if _, own := errors.AsType[*fs.PathError](err); err != nil && !own {
		err = fmt.Errorf("%w: %w", errAway, err) // it broke off
	}
	if got := hex.EncodeToString(h.Sum(nil)); err == nil && got != hash {
		err = fmt.Errorf("the file arrived with another content (SHA-256 %s)", got)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(to)) // for the next try
	}
	return err
}

// again are answers after which an upload goes on.
var again = []int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}

// uploads is how often an upload goes on after it broke off.
const uploads = 5

// Store implements [Server]. An upload that broke off goes on where it stopped.
func (r *Remote) Store(ctx context.Context, hash, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for try := range uploads {
		if err = r.part(ctx, hash, f, info.Size()); err == nil || ctx.Err() != nil {
			return err
		}
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return err
		}
		if p, ok := errors.AsType[*Problem](err); ok && (p.final || p.Status < 500 && !slices.Contains(again, p.Status)) {
			return err
		}
		t := time.NewTimer(time.Second << try)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return err
}

// part sends what the server lacks of a file.
func (r *Remote) part(ctx context.Context, hash string, f *os.File, size int64) error {
	res, err := r.send(ctx, http.MethodHead, "/files/"+hash, nil, nil)
	if p, ok := errors.AsType[*Problem](err); ok {
		p.final = p.Status < 500 && p.Status != http.StatusTooManyRequests
	}
	if err != nil {
		return err
	}
	res.Body.Close()
	at, err := strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || at < 0 || at > size {
		return fmt.Errorf("the server has %q bytes of a file of %d", res.Header.Get("Upload-Offset"), size)
	}
	switch {
	case res.Header.Get("Upload-Complete") == "?1":
		return nil
	case at == size: // all arrived, and the server ended before it checked the file
		at = 0
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if at > 0 {
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", at, size-1, size))
	}
	res, err = r.send(ctx, http.MethodPut, "/files/"+hash, io.NewSectionReader(f, at, size-at), header)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
