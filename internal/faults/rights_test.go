package faults

var rights []fault
