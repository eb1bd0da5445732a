package memory_test

import (
	"testing"

	"github.com/prunectl/prunectl/pruner/prunertest"
)

func TestContract(t *testing.T) { prunertest.Run(t, prunertest.Memory) }
