package faults

var catalogs []fault
