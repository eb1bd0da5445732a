//go:build unix

package pgserver

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestFetch serves an archive as the repository does, in which the programs
// are links to the local ones.
func TestFetch(t *testing.T) {
	local, err := FindBinDir()
	if err != nil {
		t.Fatal(err)
	}
	jar := archive(t, local)
	var asked []string
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		sum := sha256.Sum256(jar)
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			_, _ = w.Write([]byte(hex.EncodeToString(sum[:])))
		} else {
			_, _ = w.Write(jar)
		}
	}))
	defer repository.Close()

	tempFolder(t)
	onlyIn(t)
	s := start(t, Options{Download: true, repository: repository.URL})
	if got := text(t, connect(t, s.DSN("postgres")), "show server_version_num"); got == "" {
		t.Error("no version")
	}
	if len(asked) != 2 || !strings.Contains(s.How, "fetched") || !strings.HasPrefix(s.BinDir, s.dir) {
		t.Errorf("asked for %q; %s", asked, s.How)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestFetchFails(t *testing.T) {
	repository := httptest.NewServer(http.NotFoundHandler())
	defer repository.Close()
	tempFolder(t)
	onlyIn(t)
	_, err := Start(deadline(t), Options{Download: true, repository: repository.URL})
	if !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), "embedded-postgres") || !strings.Contains(err.Error(), "no version found") {
		t.Errorf("%v", err)
	}
	if _, err = Start(deadline(t), Options{}); !errors.Is(err, ErrNoPrograms) || strings.Contains(err.Error(), "embedded") {
		t.Errorf("without leave to download: %v", err)
	}
}

// archive is a jar (zip) of a .txz (xz of tar) of links to the programs in dir.
func archive(t *testing.T, dir string) []byte {
	t.Helper()
	var tarred, jar bytes.Buffer
	tw := tar.NewWriter(&tarred)
	for _, name := range []string{"initdb", "postgres", "pg_ctl"} {
		h := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: filepath.Join(dir, name), Mode: 0o777}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(&jar)
	w, err := zw.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(xz(tarred.Bytes())); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

// xz wraps up to 64 KiB into the xz format without compressing: one block of
// one stored LZMA2 chunk.
func xz(data []byte) []byte {
	le, crc := binary.LittleEndian.AppendUint32, crc32.ChecksumIEEE
	pad := func(b []byte) []byte { return append(b, make([]byte, (4-len(b)%4)%4)...) }
	flags := []byte{0, 1} // checked by CRC32

	out := append([]byte("\xfd7zXZ\x00"), flags...)
	out = le(out, crc(flags))

	header := []byte{2, 0, 0x21, 1, 0x16, 0, 0, 0} // LZMA2, 8 MiB dictionary
	block := le(header, crc(header))
	block = append(block, 1) // stored, new dictionary
	block = binary.BigEndian.AppendUint16(block, uint16(len(data)-1))
	block = append(append(block, data...), 0)
	unpadded := len(block) + 4
	out = append(out, pad(block)...)
	out = le(out, crc(data))

	index := binary.AppendUvarint(binary.AppendUvarint([]byte{0, 1}, uint64(unpadded)), uint64(len(data)))
	index = pad(index)
	index = le(index, crc(index))
	out = append(out, index...)

	footer := append(le(nil, uint32(len(index)/4-1)), flags...)
	return append(append(le(out, crc(footer)), footer...), "YZ"...)
}
