package purge_test

import (
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
