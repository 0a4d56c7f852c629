"""Tests of ATTP, with one recorder for all of them."""
