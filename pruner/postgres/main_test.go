package postgres

import (
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
