package blob

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	fakeID     = "AKIAIOSFODNN7EXAMPLE"
	fakeSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	fakePrefix = "a b/ü+/"
)

// fake is an S3-compatible store in memory. It checks signatures by what arrives.
type fake struct {
	http  *httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	// before answers instead if it returns a status.
	before func(r *http.Request) int
	seen   []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{files: map[string][]byte{}}
	f.http = httptest.NewServer(f)
	t.Cleanup(f.http.Close)
	return f
}

func (f *fake) bucket(t *testing.T, change ...func(env map[string]string)) *bucket {
	t.Helper()
	env := map[string]string{"AWS_ACCESS_KEY_ID": fakeID, "AWS_SECRET_ACCESS_KEY": fakeSecret, "AWS_ENDPOINT_URL": f.http.URL + "/s3", "AWS_REGION": "eu-north-1"}
	for _, c := range change {
		c(env)
	}
	b, err := openBucket("s3://results/a%20b/%C3%BC%2B", 1000, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	b.pause = func(int) {}
	return b
}

// signature computes what a request should be signed with, by the description of AWS.
func (f *fake) signature(r *http.Request, signed string) string {
	day := r.Header.Get("X-Amz-Date")[:8]
	path, query, _ := strings.Cut(r.RequestURI, "?")
	lines := []string{r.Method, path, query}
	for name := range strings.SplitSeq(signed, ";") {
		v := r.Header.Get(name)
		if name == "host" {
			v = r.Host
		}
		lines = append(lines, name+":"+v)
	}
	lines = append(lines, "", signed, r.Header.Get("X-Amz-Content-Sha256"))
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s/eu-north-1/s3/aws4_request\n%x", r.Header.Get("X-Amz-Date"), day, hash)
	key := []byte("AWS4" + fakeSecret)
	for _, part := range []string{day, "eu-north-1", "s3", "aws4_request", text} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.Method+" "+r.RequestURI)
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>text of the store</Message></Error>", code)
	}
	if f.before != nil {
		if status := f.before(r); status != 0 {
			refuse(status, "SlowDown")
			return
		}
	}
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, signature, _ := strings.Cut(rest, ",Signature=")
	if signature != f.signature(r, signed) || !strings.Contains(signed, "host;") || !strings.Contains(signed, "x-amz-date") {
		refuse(403, "SignatureDoesNotMatch")
		return
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/s3/results/")
	if !ok {
		refuse(404, "NoSuchBucket")
		return
	}
	switch {
	case r.Method == "PUT":
		b, _ := io.ReadAll(r.Body)
		if h := sha256.Sum256(b); hex.EncodeToString(h[:]) != r.Header.Get("X-Amz-Content-Sha256") {
			refuse(400, "XAmzContentSHA256Mismatch")
			return
		}
		f.files[key] = b
	case r.Method == "DELETE":
		delete(f.files, key)
		w.WriteHeader(204)
	case key == "":
		q := r.URL.Query()
		var names []string
		for n := range f.files {
			if strings.HasPrefix(n, q.Get("prefix")) && n > q.Get("continuation-token") {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		more := ""
		if len(names) > 2 {
			names = names[:2]
			more = "<NextContinuationToken>" + names[1] + "</NextContinuationToken>"
		}
		fmt.Fprint(w, "<ListBucketResult>"+more)
		for _, n := range names {
			fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>1</Size></Contents>", n)
		}
		fmt.Fprint(w, "</ListBucketResult>")
	default:
		b, ok := f.files[key]
		if !ok {
			refuse(404, "NoSuchKey")
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

// The examples of Amazon's description of signatures.
func TestSignature(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, url, header, value, body, want string }{
		{"GET", "https://examplebucket.s3.amazonaws.com/test.txt", "Range", "bytes=0-9", emptyHash, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"GET", "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "", "", emptyHash, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		b := &bucket{id: fakeID, secret: fakeSecret, region: "us-east-1", now: func() time.Time { return time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC) }}
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		b.sign(r, c.body)
		if _, got, _ := strings.Cut(r.Header.Get("Authorization"), "Signature="); got != c.want {
			t.Errorf("%s: signature %s, expected %s", c.url, got, c.want)
		}
	}
}

// Two servers share the files of a bucket, and lists have many parts.
func TestSharedBucket(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var stores []*Store
	for range 2 {
		s, err := Open(filepath.Join(t.TempDir(), "files"), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		s.files = f.bucket(t, func(env map[string]string) { env["AWS_SESSION_TOKEN"] = "session" })
		stores = append(stores, s)
	}
	var want, got []string
	for i := range 5 {
		hash, _, err := stores[i%2].Put(strings.NewReader(fmt.Sprint("file ", i)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, hash)
	}
	f.files[fakePrefix+"another file"] = nil
	f.files["outside"+want[0]] = nil
	if err := stores[0].All(func(h string) error { got = append(got, h); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("all %v, expected %v", got, want)
	}
	for _, s := range stores {
		if err := s.Link(want[0], filepath.Join(t.TempDir(), "file")); err != nil {
			t.Error(err)
		}
	}
	// What the bucket damaged is not given to a program.
	f.files[fakePrefix+want[0]][0]++
	if err := stores[0].Link(want[0], filepath.Join(t.TempDir(), "file")); !errors.Is(err, ErrHash) {
		t.Errorf("damaged file: %v", err)
	}
}

// A busy store is asked again, and what it refuses is told.
func TestBusyBucket(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	b := f.bucket(t)
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	f.before = func(*http.Request) int {
		if n++; n%3 != 0 {
			return []int{503, 429}[n%2]
		}
		return 0
	}
	hash := hashOf([]byte("model"))
	if err := b.add(from, hash); err != nil {
		t.Fatal(err)
	}
	if size, err := b.size(hash); size != 5 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	f.before = func(*http.Request) int { return 500 }
	if _, err := b.size(hash); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("broken store: %v", err)
	}
	if n := len(f.seen); n != 3+3+tries {
		t.Errorf("%d requests: %v", n, f.seen)
	}
	f.before = nil
	b.secret = "another one"
	if _, err := b.list("", "1"); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch text of the store") || strings.Contains(err.Error(), b.secret) {
		t.Errorf("wrong secret: %v", err)
	}
	b.secret, b.url.Path = fakeSecret, "/s3/other/"
	if _, err := b.list("", "1"); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("absent bucket: %v", err)
	}
	f.http.Close()
	if _, err := b.size(hash); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("store that is gone: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	env := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
	for where, want := range map[string]string{
		"s3://results":                            "https://results.s3.us-east-1.amazonaws.com/",
		"s3://results/a/b?region=eu-west-1":       "https://results.s3.eu-west-1.amazonaws.com/ a/b/",
		"s3://re.sults/":                          "https://s3.us-east-1.amazonaws.com/re.sults/",
		"s3://results/p/?endpoint=http://lab:900": "http://lab:900/results/ p/",
		"results":                          "expected s3://",
		"https://results":                  "expected s3://",
		"s3:///prefix":                     "expected s3://",
		"s3://results?endpiont=http://lab": "unknown parameter",
		"s3://results?endpoint=lab":        "expected an address",
	} {
		b, err := openBucket(where, 1000, func(name string) string { return env[name] })
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.TrimSpace(b.url.String() + " " + b.prefix)
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s is %s, expected %s", where, got, want)
		}
	}
	if _, err := openBucket("s3://results", 1000, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("no credentials: %v", err)
	}
	if _, err := openBucket("s3://results", maxObject+1, func(name string) string { return env[name] }); err == nil {
		t.Error("files that S3 does not take are accepted")
	}
}
