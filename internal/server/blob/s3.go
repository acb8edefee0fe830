package blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// maxAnswer bounds an answer of S3 that is no file, in bytes.
	maxAnswer = 8 << 20
	// maxObject is the largest file that S3 takes by one request.
	maxObject = 5 << 30
	// tries is how often a request is sent that S3 could not answer.
	tries = 4
	// emptyHash is the SHA-256 of nothing.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// bucket keeps files in a bucket of an S3-compatible store.
type bucket struct {
	url                 url.URL // of the bucket
	name, prefix        string
	region              string
	id, secret, session string
	client              *http.Client
	now                 func() time.Time
	pause               func(try int)
}

// openBucket reads an address s3://BUCKET/PREFIX?endpoint=URL&region=NAME. Credentials and what the
// address lacks come from the variables of the environment that other programs for S3 read.
func openBucket(where string, limit int64, getenv func(string) string) (*bucket, error) {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, errors.New("--files: expected s3://BUCKET/PREFIX, such as s3://results/opmeter?endpoint=https://s3.example.org")
	}
	q := u.Query()
	for name := range q {
		if name != "endpoint" && name != "region" {
			return nil, fmt.Errorf("--files: unknown parameter %q: expected endpoint or region", name)
		}
	}
	b := &bucket{
		name: u.Host, prefix: strings.TrimPrefix(u.Path, "/"),
		region: cmp.Or(q.Get("region"), getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		id:     getenv("AWS_ACCESS_KEY_ID"), secret: getenv("AWS_SECRET_ACCESS_KEY"), session: getenv("AWS_SESSION_TOKEN"),
		now: time.Now, pause: func(try int) { time.Sleep(200 * time.Millisecond << try) },
	}
	if b.prefix != "" && !strings.HasSuffix(b.prefix, "/") {
		b.prefix += "/"
	}
	if b.id == "" || b.secret == "" {
		return nil, errors.New("--files: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the credentials of the bucket")
	}
	if limit > maxObject {
		return nil, fmt.Errorf("files of up to %d bytes: S3 takes at most %d", limit, int64(maxObject))
	}
	endpoint := cmp.Or(q.Get("endpoint"), getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
	switch {
	case endpoint != "":
		e, err := url.Parse(endpoint)
		if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" {
			return nil, fmt.Errorf("--files: endpoint %q: expected an address such as https://s3.example.org", endpoint)
		}
		b.url = url.URL{Scheme: e.Scheme, Host: e.Host, Path: strings.TrimSuffix(e.Path, "/") + "/" + b.name + "/"}
	case strings.Contains(b.name, "."): // the certificate of AWS covers no names with dots
		b.url = url.URL{Scheme: "https", Host: "s3." + b.region + ".amazonaws.com", Path: "/" + b.name + "/"}
	default:
		b.url = url.URL{Scheme: "https", Host: b.name + ".s3." + b.region + ".amazonaws.com", Path: "/"}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = time.Minute
	transport.MaxIdleConnsPerHost = 16
	b.client = &http.Client{Transport: transport}
	return b, nil
}

// request describes a request of the bucket.
type request struct {
	method, key string
	query       url.Values
	span        string // of bytes, "" for all
	hash        string // of the body
	body        func() (io.Reader, int64, error)
}

// do sends a request, again if S3 is busy or cannot be reached. Close the body of the answer.
func (b *bucket) do(r request) (res *http.Response, err error) {
	for try := range tries {
		if try > 0 {
			b.pause(try)
		}
		var again bool
		if res, again, err = b.once(r); !again {
			break
		}
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("bucket %s: %w", b.name, err)
	}
	return res, err
}

// once sends a request and reports whether it may succeed later.
func (b *bucket) once(r request) (_ *http.Response, again bool, err error) {
	u := b.url
	u.Path += r.key
	u.RawPath = escapePath(u.Path)
	u.RawQuery = escapeQuery(r.query)
	var (
		body io.Reader
		size int64
	)
	if r.body != nil {
		if body, size, err = r.body(); err != nil {
			return nil, false, err
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), r.method, u.String(), body)
	if err != nil {
		return nil, false, err
	}
	req.ContentLength = size
	if r.span != "" {
		req.Header.Set("Range", r.span)
	}
	b.sign(req, cmp.Or(r.hash, emptyHash))
	res, err := b.client.Do(req)
	if err != nil {
		return nil, true, err
	}
	if res.StatusCode < 300 {
		return res, false, nil
	}
	defer res.Body.Close()
	var problem struct{ Code, Message string }
	_ = xml.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&problem) // an answer to HEAD has no body
	if res.StatusCode == http.StatusNotFound && problem.Code != "NoSuchBucket" {
		return nil, false, ErrNotFound
	}
	err = fmt.Errorf("%s of %q: %s %s", r.method, r.key, res.Status, strings.TrimSpace(problem.Code+" "+problem.Message))
	return nil, res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests, err
}

// sign adds the headers of AWS signature version 4, which cover all headers that are set before.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
func (b *bucket) sign(r *http.Request, body string) {
	at := b.now().UTC()
	r.Header.Set("X-Amz-Date", at.Format("20060102T150405Z"))
	r.Header.Set("X-Amz-Content-Sha256", body)
	if b.session != "" {
		r.Header.Set("X-Amz-Security-Token", b.session)
	}
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n%s\n", r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.URL.Host
		}
		fmt.Fprintf(&text, "%s:%s\n", name, strings.TrimSpace(value))
	}
	signed := strings.Join(names, ";")
	fmt.Fprintf(&text, "\n%s\n%s", signed, body)
	scope := at.Format("20060102") + "/" + b.region + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(text.String()))
	toSign := "AWS4-HMAC-SHA256\n" + at.Format("20060102T150405Z") + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + b.secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%x", b.id, scope, signed, mac(key, toSign)))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// escapePath escapes a path as S3 does before it checks the signature.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(p), "+", "%20")
	}
	return strings.Join(parts, "/")
}

// escapeQuery escapes a query, in the order in which S3 signs it.
func escapeQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

func (b *bucket) size(hash string) (int64, error) {
	res, err := b.do(request{method: http.MethodHead, key: b.prefix + hash})
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	if res.ContentLength < 0 {
		return 0, fmt.Errorf("bucket %s: no size of %s", b.name, hash)
	}
	return res.ContentLength, nil
}

func (b *bucket) open(hash string) (io.ReadSeekCloser, error) {
	n, err := b.size(hash)
	if err != nil {
		return nil, err
	}
	return &object{b: b, key: b.prefix + hash, size: n}, nil
}

// add stores a file. The signature holds its hash, which S3 compares with what arrives.
func (b *bucket) add(from, hash string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	res, err := b.do(request{method: http.MethodPut, key: b.prefix + hash, hash: hash, body: func() (io.Reader, int64, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		if info.Size() == 0 {
			return http.NoBody, 0, nil
		}
		return io.NewSectionReader(f, 0, info.Size()), info.Size(), nil
	}})
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(res.Body.Close(), os.Remove(from))
}

func (b *bucket) link(hash, to string) error {
	from, err := b.open(hash)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), from)
	if err := errors.Join(err, f.Close(), from.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != hash {
		return fmt.Errorf("bucket %s: %w: %s, expected %s", b.name, ErrHash, got, hash)
	}
	return nil
}

// remove removes a file. S3 does not say whether it was there.
func (b *bucket) remove(hash string) error {
	if _, err := b.size(hash); err != nil {
		return err
	}
	res, err := b.do(request{method: http.MethodDelete, key: b.prefix + hash})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (b *bucket) all(yield func(hash string) error) error {
	for token := ""; ; {
		page, err := b.list(token, "1000")
		if err != nil {
			return err
		}
		for _, c := range page.Contents {
			if hash := strings.TrimPrefix(c.Key, b.prefix); Valid(hash) {
				if err := yield(hash); err != nil {
					return err
				}
			}
		}
		if token = page.NextContinuationToken; token == "" {
			return nil
		}
	}
}

// listing is a page of the names in a bucket.
type listing struct {
	Contents              []struct{ Key string }
	NextContinuationToken string
}

func (b *bucket) list(token, most string) (page listing, err error) {
	q := url.Values{"list-type": {"2"}, "prefix": {b.prefix}, "max-keys": {most}}
	if token != "" {
		q.Set("continuation-token", token)
	}
	res, err := b.do(request{method: http.MethodGet, query: q})
	if err != nil {
		return page, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil {
		err = xml.NewDecoder(bytes.NewReader(text)).Decode(&page)
	}
	if err != nil {
		err = fmt.Errorf("bucket %s: list of files: %w", b.name, err)
	}
	return page, err
}

// object reads a file from where the reader stands.
type object struct {
	b        *bucket
	key      string
	size, at int64
	body     io.ReadCloser // nil until it is read
}

func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	if o.body == nil {
		res, err := o.b.do(request{
			method: http.MethodGet, key: o.key, span: fmt.Sprintf("bytes=%d-%d", o.at, o.size-1),
		})
		if err != nil {
			return 0, err
		}
		if res.StatusCode != http.StatusPartialContent {
			return 0, errors.Join(fmt.Errorf("bucket %s: %s for a part of a file", o.b.name, res.Status), res.Body.Close())
		}
		o.body = res.Body
	}
	n, err := o.body.Read(p)
	o.at += int64(n)
	if errors.Is(err, io.EOF) && o.at < o.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a file")
	}
	if offset != o.at && o.body != nil {
		if err := o.Close(); err != nil {
			return 0, err
		}
	}
	o.at = offset
	return offset, nil
}

func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	err := o.body.Close()
	o.body = nil
	return err
}
