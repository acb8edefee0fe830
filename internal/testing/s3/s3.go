// Package s3 is a stand-in for an S3-compatible store, in memory. It checks signatures and hashes
// of what arrives.
package s3

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the store accepts.
const (
	Bucket = "results"
	Region = "eu-north-1"
	ID     = "AKIAIOSFODNN7EXAMPLE"
	Secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

// Fake is a store with one bucket.
type Fake struct {
	*httptest.Server
	mu sync.Mutex
	// Files are the content of the bucket. Lists have at most two of them.
	Files map[string][]byte
	// Before answers instead if it returns a status.
	Before func(r *http.Request) int
	// Seen are the requests.
	Seen []string
}

// New starts a store that ends with the test.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{Files: map[string][]byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// Environment returns the variables of the environment that lead to the store.
func (f *Fake) Environment() map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": Secret, "AWS_ENDPOINT_URL": f.URL, "AWS_REGION": Region}
}

// signature computes what a request should be signed with, by the description of AWS.
func (f *Fake) signature(r *http.Request, signed string) string {
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
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s/"+Region+"/s3/aws4_request\n%x", r.Header.Get("X-Amz-Date"), day, hash)
	key := []byte("AWS4" + Secret)
	for _, part := range []string{day, Region, "s3", "aws4_request", text} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// ServeHTTP answers a request.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Seen = append(f.Seen, r.Method+" "+r.RequestURI)
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>text of the store</Message></Error>", code)
	}
	if f.Before != nil {
		if status := f.Before(r); status != 0 {
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
	key, ok := strings.CutPrefix(r.URL.Path, "/"+Bucket+"/")
	if !ok {
		refuse(404, "NoSuchBucket")
		return
	}
	switch {
	case r.Method == http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		if h := sha256.Sum256(b); hex.EncodeToString(h[:]) != r.Header.Get("X-Amz-Content-Sha256") {
			refuse(400, "XAmzContentSHA256Mismatch")
			return
		}
		f.Files[key] = b
	case r.Method == http.MethodDelete:
		delete(f.Files, key)
		w.WriteHeader(http.StatusNoContent)
	case key == "":
		q := r.URL.Query()
		var names []string
		for n := range f.Files {
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
		b, ok := f.Files[key]
		if !ok {
			refuse(404, "NoSuchKey")
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}
