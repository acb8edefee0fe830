package blob

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/s3"
)

const fakePrefix = "a b/ü+/"

// bucketOf opens the bucket of a stand-in.
func bucketOf(t *testing.T, f *s3.Fake, change ...func(env map[string]string)) *bucket {
	t.Helper()
	env := f.Environment()
	for _, c := range change {
		c(env)
	}
	b, err := openBucket("s3://"+s3.Bucket+"/a%20b/%C3%BC%2B", 1000, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	b.pause = func(int) {}
	return b
}

// The examples of Amazon's description of signatures.
func TestSignature(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, url, header, value, body, want string }{
		{"GET", "https://examplebucket.s3.amazonaws.com/test.txt", "Range", "bytes=0-9", emptyHash, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"GET", "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "", "", emptyHash, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		b := &bucket{id: s3.ID, secret: s3.Secret, region: "us-east-1", now: func() time.Time { return time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC) }}
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
	f := s3.New(t)
	var stores []*Store
	for range 2 {
		s, err := Open(filepath.Join(t.TempDir(), "files"), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		s.files = bucketOf(t, f, func(env map[string]string) { env["AWS_SESSION_TOKEN"] = "session" })
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
	f.Files[fakePrefix+"another file"] = nil
	f.Files["outside"+want[0]] = nil
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
	f.Files[fakePrefix+want[0]][0]++
	if err := stores[0].Link(want[0], filepath.Join(t.TempDir(), "file")); !errors.Is(err, ErrHash) {
		t.Errorf("damaged file: %v", err)
	}
}

// A busy store is asked again, and what it refuses is told.
func TestBusyBucket(t *testing.T) {
	t.Parallel()
	f := s3.New(t)
	b := bucketOf(t, f)
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	f.Before = func(*http.Request) int {
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
	f.Before = func(*http.Request) int { return 500 }
	if _, err := b.size(hash); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("broken store: %v", err)
	}
	if n := len(f.Seen); n != 3+3+tries {
		t.Errorf("%d requests: %v", n, f.Seen)
	}
	f.Before = nil
	b.secret = "another one"
	if _, err := b.list("", "1"); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch text of the store") || strings.Contains(err.Error(), b.secret) {
		t.Errorf("wrong secret: %v", err)
	}
	b.secret, b.url.Path = s3.Secret, "/other/"
	if _, err := b.list("", "1"); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("absent bucket: %v", err)
	}
	f.Close()
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
